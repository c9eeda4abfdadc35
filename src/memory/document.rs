//! The JSON of an object, in members that its versions share: a write of some leaves the others as they are.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

use super::names;

/// A JSON object. A copy costs as much as it has members, whatever is in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Document {
    members: BTreeMap<Arc<str>, Arc<Member>>,
}

/// A member, with its text as soon as that is wanted by several documents, or will be.
#[derive(Debug, Default)]
struct Member {
    value: Value,
    text: OnceLock<Box<[u8]>>,
}

impl Member {
    fn new(value: Value) -> Arc<Self> {
        let text = OnceLock::new();
        Arc::new(Self { value, text })
    }
}

impl Clone for Member {
    /// Of a copy that is to be changed.
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            text: OnceLock::new(),
        }
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Makes the comparison of what is shared one of pointers.
impl Eq for Member {}

impl From<Map<String, Value>> for Document {
    fn from(members: Map<String, Value>) -> Self {
        let member = |(key, value): (String, Value)| (Arc::from(key), Member::new(value));
        Self {
            members: members.into_iter().map(member).collect(),
        }
    }
}

impl Document {
    /// A document of this JSON, if it is an object.
    pub(super) fn of(value: Value) -> Option<Self> {
        match value {
            Value::Object(members) => Some(members.into()),
            _ => None,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key).map(|member| &member.value)
    }

    /// A member to be changed, no longer shared from now on.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let member = Arc::make_mut(self.members.get_mut(key)?);
        member.text.take();
        Some(&mut member.value)
    }

    /// A text among the members.
    pub(super) fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn insert(&mut self, key: &str, value: Value) {
        let member = Member::new(value);
        match self.members.get_mut(key) {
            Some(slot) => *slot = member,
            None => {
                self.members.insert(key.into(), member);
            }
        }
    }

    /// Takes a member over from another document, or loses it if that has none.
    pub(super) fn share(&mut self, key: &str, from: &Self) {
        match from.members.get_key_value(key) {
            Some((key, member)) => {
                self.members.insert(key.clone(), member.clone());
            }
            None => {
                self.members.remove(key);
            }
        }
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Value> {
        self.members.remove(key).map(owned)
    }

    pub(super) fn contains_key(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// Whether both have the same there, or both nothing.
    pub(super) fn has_same(&self, key: &str, other: &Self) -> bool {
        self.members.get(key) == other.members.get(key)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter().map(|(key, member)| (&**key, &member.value))
    }

    /// A member of the metadata.
    pub(super) fn meta(&self, key: &str) -> Option<&Value> {
        self.get("metadata").and_then(|meta| meta.get(key))
    }

    pub(super) fn meta_text(&self, key: &str) -> &str {
        self.meta(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The metadata to be changed, if it is an object.
    pub(super) fn meta_mut(&mut self) -> Option<&mut Map<String, Value>> {
        self.get_mut("metadata").and_then(Value::as_object_mut)
    }

    /// Sets a member of the metadata; an empty list removes it.
    pub(super) fn set_meta(&mut self, key: &str, value: Value) {
        let Some(meta) = self.meta_mut() else { return };
        if value.as_array().is_some_and(Vec::is_empty) {
            meta.remove(key);
        } else {
            meta.insert(key.to_owned(), value);
        }
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        names::array(self.meta("finalizers")).any(|finalizer| finalizer == name)
    }

    /// All of it as one value.
    pub(super) fn to_value(&self) -> Value {
        let member = |(key, member): (&Arc<str>, &Arc<Member>)| (key.to_string(), member.value.clone());
        Value::Object(self.members.iter().map(member).collect())
    }

    /// Changes all of it as one value, which stays an object; what is as before stays shared.
    pub(super) fn edit<T>(&mut self, change: impl FnOnce(&mut Value) -> T) -> T {
        let mut before = BTreeMap::new();
        let mut whole = Map::new();
        for (key, member) in std::mem::take(&mut self.members) {
            let name = key.to_string();
            let value = if Arc::strong_count(&member) > 1 {
                let value = member.value.clone();
                before.insert(key, member);
                value
            } else {
                owned(member)
            };
            whole.insert(name, value);
        }
        let mut whole = Value::Object(whole);
        let result = change(&mut whole);
        if let Value::Object(members) = whole {
            let member = |(key, value): (String, Value)| match before.remove_entry(key.as_str()) {
                Some((key, member)) if member.value == value => (key, member),
                _ => (Arc::from(key), Member::new(value)),
            };
            self.members = members.into_iter().map(member).collect();
        }
        result
    }

    /// Writes the members that `shown` names as a JSON object.
    pub(super) fn encode(&self, text: &mut Vec<u8>, shown: impl Fn(&str) -> bool) {
        text.push(b'{');
        let members = self.members.iter().filter(|(key, _)| shown(key));
        for (index, (key, member)) in members.enumerate() {
            if index > 0 {
                text.push(b',');
            }
            write(text, &**key);
            text.push(b':');
            if &**key == "spec" || Arc::strong_count(member) > 1 {
                let known = member.text.get_or_init(|| {
                    let mut text = Vec::new();
                    write(&mut text, &member.value);
                    text.into()
                });
                text.extend_from_slice(known);
            } else {
                write(text, &member.value);
            }
        }
        text.push(b'}');
    }
}

fn owned(member: Arc<Member>) -> Value {
    Arc::try_unwrap(member).map_or_else(|shared| shared.value.clone(), |member| member.value)
}

/// Writing of JSON into memory does not fail.
fn write<T: serde::Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Document {
        let pod = json!({
            "kind": "Pod", "metadata": {"name": "p", "generation": 1},
            "spec": {"containers": [{"name": "c", "env": [{"name": "E", "value": "\"ü\n"}]}]}, "status": {},
        });
        Document::of(pod).unwrap()
    }

    /// The members that two documents share.
    fn shared<'a>(one: &'a Document, other: &Document) -> Vec<&'a str> {
        let is_shared = |key: &&str| {
            let members = (one.members.get(*key), other.members.get(*key));
            matches!(members, (Some(one), Some(other)) if Arc::ptr_eq(one, other))
        };
        one.members().map(|(key, _)| key).filter(is_shared).collect()
    }

    fn text(document: &Document, shown: fn(&str) -> bool) -> String {
        let mut text = Vec::new();
        document.encode(&mut text, shown);
        String::from_utf8(text).unwrap()
    }

    fn whole(document: &Document) -> String {
        text(document, |_| true)
    }

    #[test]
    fn what_is_changed_is_changed_in_one_copy() {
        let before = pod();
        let mut after = before.clone();
        after.set_meta("generation", json!(2));
        after.insert("status", json!({"phase": "Running"}));
        assert_eq!(shared(&before, &after), ["kind", "spec"]);
        assert_eq!(before, pod());
        assert!(before.has_same("spec", &after) && !before.has_same("metadata", &after));
        let again = before.clone();
        after.share("status", &again);
        after.share("metadata", &again);
        assert_eq!(shared(&before, &after), ["kind", "metadata", "spec", "status"]);
        assert_eq!(before, after);
        after.remove("spec");
        after.share("spec", &Document::default());
        assert_eq!(after.get("spec"), None);
        assert!(before.contains_key("spec"));
    }

    #[test]
    fn a_change_of_all_of_it_leaves_shared_what_it_leaves() {
        let before = pod();
        let mut after = before.clone();
        let old = after.edit(|pod| {
            pod["data"] = json!(1);
            pod["status"] = json!({});
            pod["spec"]["containers"][0]["name"].take()
        });
        assert_eq!(old, "c");
        assert_eq!(shared(&before, &after), ["kind", "metadata", "status"]);
        assert_eq!(after.get("data"), Some(&json!(1)));
        assert_eq!(before, pod());
    }

    #[test]
    fn the_text_is_that_of_the_value_however_often_it_was_written_before() {
        let mut document = pod();
        for name in ["c", "d", "e"] {
            let kept = document.clone();
            for version in [&document, &kept, &document] {
                assert_eq!(whole(version), version.to_value().to_string());
            }
            drop(kept);
            document.get_mut("spec").unwrap()["containers"][0]["name"] = json!(name);
            assert_eq!(whole(&document), document.to_value().to_string());
            document.insert("spec", json!({ "name": name, "containers": [{}] }));
        }
        let bare = text(&document, |key| key == "kind" || key == "status");
        assert_eq!(bare, r#"{"kind":"Pod","status":{}}"#);
        assert_eq!(whole(&Document::default()), "{}");
        assert_eq!(Document::of(json!([])), None);
    }
}
