//! The JSON of an object, in members that its versions share. The members of the metadata are shared too, because
//! each write changes few of them.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::object::{json, members::Members};

const METADATA: &str = "metadata";

/// A JSON object. The cost of a copy grows with the number of members, not with their content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// All members; without the metadata if that is an object.
    members: Members,
    metadata: Option<Arc<Members>>,
}

impl From<Map<String, Value>> for Document {
    fn from(mut members: Map<String, Value>) -> Self {
        let metadata = split(&mut members).map(|metadata| Arc::new(metadata.into()));
        Self {
            members: members.into(),
            metadata,
        }
    }
}

/// Removes the metadata from the map and returns it, if it is an object.
fn split(members: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    match members.remove(METADATA)? {
        Value::Object(metadata) => Some(metadata),
        other => {
            members.insert(METADATA.to_owned(), other);
            None
        }
    }
}

impl Document {
    /// Parses a text. Returns `None` if it is not an object.
    ///
    /// # Errors
    ///
    /// The text is not JSON.
    pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Option<Self>> {
        if text.trim_ascii_start().starts_with(b"{") {
            return serde_json::from_slice(text).map(Some);
        }
        serde_json::from_slice::<Value>(text).map(|_| None)
    }

    /// Returns the metadata, if it is an object.
    pub(crate) fn metadata(&self) -> Option<&Members> {
        self.metadata.as_deref()
    }

    /// Returns the metadata for changes, if it is an object.
    pub(crate) fn metadata_mut(&mut self) -> Option<&mut Members> {
        self.metadata.as_mut().map(Arc::make_mut)
    }

    /// Returns a member, except metadata that is an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.members.get(key)
    }

    /// Returns a member for changes; it is no longer shared.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.members.get_mut(key)
    }

    /// Changes a member. It stays shared if its value does not change.
    pub(crate) fn change(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        self.members.change(key, change);
    }

    /// Returns the text of a member; empty if there is none.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.members.text(key)
    }

    pub(crate) fn insert(&mut self, key: &str, value: Value) {
        if key == METADATA {
            self.remove(key);
            if let Value::Object(metadata) = value {
                self.metadata = Some(Arc::new(metadata.into()));
                return;
            }
        }
        self.members.insert(key, value);
    }

    /// Takes a member from another document, or removes it if the other has none.
    pub(crate) fn share_from(&mut self, key: &str, from: &Self) {
        if key == METADATA {
            self.metadata.clone_from(&from.metadata);
        }
        self.members.share_from(key, &from.members);
    }

    /// Removes and returns a member. Metadata that was an object is not returned.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Value> {
        if key == METADATA {
            self.metadata = None;
        }
        self.members.remove(key)
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// Returns true if both have the same member, or neither has it.
    pub(crate) fn has_same(&self, key: &str, other: &Self) -> bool {
        (key != METADATA || self.metadata == other.metadata) && self.members.has_same(key, &other.members)
    }

    /// Returns all members; without the metadata if that is an object.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter()
    }

    /// Returns a member of the metadata.
    pub(crate) fn meta(&self, key: &str) -> Option<&Value> {
        self.metadata.as_ref()?.get(key)
    }

    pub(crate) fn meta_text(&self, key: &str) -> &str {
        self.meta(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a member of the metadata; an empty list removes it.
    pub(crate) fn set_meta(&mut self, key: &str, value: Value) {
        let Some(metadata) = self.metadata_mut() else {
            return;
        };
        if value.as_array().is_some_and(Vec::is_empty) {
            metadata.remove(key);
        } else {
            metadata.insert(key, value);
        }
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        json::array(self.meta("finalizers")).any(|finalizer| finalizer == name)
    }

    /// Returns the document as one value.
    pub(crate) fn to_value(&self) -> Value {
        let mut whole = self.members.to_map();
        if let Some(metadata) = &self.metadata {
            whole.insert(METADATA.to_owned(), Value::Object(metadata.to_map()));
        }
        Value::Object(whole)
    }

    /// Changes the document as one value, which must stay an object. Unchanged members stay shared.
    pub(crate) fn edit<T>(&mut self, change: impl FnOnce(&mut Value) -> T) -> T {
        let (mut whole, shared) = self.members.take_map();
        let metadata = self.metadata.take();
        let before = metadata
            .as_ref()
            .filter(|known| Arc::strong_count(known) > 1)
            .cloned();
        let shared_metadata = metadata.map(|metadata| {
            let (map, shared) = Arc::unwrap_or_clone(metadata).take_map();
            whole.insert(METADATA.to_owned(), Value::Object(map));
            shared
        });
        let mut whole = Value::Object(whole);
        let result = change(&mut whole);
        if let Value::Object(mut members) = whole {
            let metadata = split(&mut members)
                .map(|map| Members::from_map_sharing(map, shared_metadata.unwrap_or_default()));
            self.metadata = metadata.map(|metadata| {
                let same = before.filter(|before| **before == metadata);
                same.unwrap_or_else(|| Arc::new(metadata))
            });
            self.members = Members::from_map_sharing(members, shared);
        }
        result
    }

    /// Applies a merge patch (RFC 7396).
    pub(crate) fn merge(&mut self, mut patch: Map<String, Value>) {
        match patch.remove(METADATA) {
            None => {}
            Some(Value::Null) => {
                self.remove(METADATA);
            }
            Some(Value::Object(given)) if self.metadata.is_some() => {
                let is_new = |(key, value): (&String, &Value)| self.meta(key) != Some(value);
                if given.iter().any(is_new)
                    && let Some(metadata) = self.metadata_mut()
                {
                    metadata.merge(given);
                }
            }
            Some(other) => self.insert(METADATA, json::strip_nulls(&other)),
        }
        self.members.merge(patch);
    }

    /// Writes the members for which `is_shown` returns true as a JSON object.
    pub(crate) fn encode(&self, text: &mut Vec<u8>, is_shown: fn(&str) -> bool) {
        let metadata = self.metadata().filter(|_| is_shown(METADATA));
        let metadata = metadata.map(|metadata| (METADATA, metadata));
        self.members.encode(text, is_shown, metadata);
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Members::deserialize(deserializer)?;
        let metadata = members.remove(METADATA);
        let mut document = Self {
            members,
            metadata: None,
        };
        if let Some(metadata) = metadata {
            document.insert(METADATA, metadata);
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(text: &str) -> Option<Document> {
        Document::parse(text.as_bytes()).unwrap()
    }

    fn pod() -> Document {
        let pod = json!({
            "kind": "Pod", "metadata": {"name": "p", "generation": 1, "labels": {"l": "x"}},
            "spec": {"containers": [{"name": "c", "env": [{"name": "E", "value": "\"ü\n"}]}]}, "status": {},
        });
        document(&pod.to_string()).unwrap()
    }

    /// Returns the keys of the members that two documents share.
    fn shared<'a>(one: &'a Document, other: &Document) -> Vec<&'a str> {
        one.members.shared_keys(&other.members)
    }

    /// Returns the keys that their metadata share.
    fn shared_metadata<'a>(one: &'a Document, other: &Document) -> Vec<&'a str> {
        one.metadata().unwrap().shared_keys(other.metadata().unwrap())
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
    fn a_change_affects_one_copy() {
        let before = pod();
        let mut after = before.clone();
        after.set_meta("generation", json!(2));
        after.insert("status", json!({"phase": "Running"}));
        assert_eq!(shared(&before, &after), ["kind", "spec"]);
        assert_eq!(shared_metadata(&before, &after), ["labels", "name"]);
        assert_eq!(before, pod());
        assert!(before.has_same("spec", &after) && !before.has_same("metadata", &after));
        let again = before.clone();
        after.share_from("status", &again);
        after.share_from("metadata", &again);
        assert_eq!(shared(&before, &after), ["kind", "spec", "status"]);
        assert_eq!(shared_metadata(&before, &after), ["generation", "labels", "name"]);
        assert_eq!(before, after);
        after.remove("spec");
        after.share_from("spec", &Document::default());
        assert_eq!(after.get("spec"), None);
        assert!(before.contains_key("spec"));
    }

    #[test]
    fn a_change_of_a_whole_object_keeps_its_unchanged_parts_shared() {
        let before = pod();
        let mut after = before.clone();
        let old = after.edit(|pod| {
            pod["data"] = json!(1);
            pod["status"] = json!({});
            pod["metadata"]["name"] = json!("q");
            pod["spec"]["containers"][0]["name"].take()
        });
        assert_eq!(old, "c");
        assert_eq!(shared(&before, &after), ["kind", "status"]);
        assert_eq!(shared_metadata(&before, &after), ["generation", "labels"]);
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
    }

    #[test]
    fn a_text_is_read_as_its_value_is() {
        for text in [
            r#" {"status": 1, "kind": "a", "metadata": {"b": {}, "a": 1}, "kind": "b"}"#,
            r#"{"metadata": [], "data": {}}"#,
            r#"{"metadata": 5, "metadata": {"a": 1}}"#,
            r#"{"metadata": {"a": 1}, "metadata": null}"#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            let Value::Object(members) = &value else {
                unreachable!()
            };
            let document = document(text).unwrap();
            assert_eq!(document, Document::from(members.clone()), "{text}");
            assert_eq!(document.to_value(), value);
        }
        for text in ["[]", "5", "null", r#" "{""#] {
            assert_eq!(document(text), None);
        }
        for text in ["", "{", "[", "{}{}", r#"{"a": 1,}"#] {
            let (own, other) = (
                Document::parse(text.as_bytes()),
                serde_json::from_str::<Value>(text),
            );
            assert_eq!(
                own.unwrap_err().to_string(),
                other.unwrap_err().to_string(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_part_that_is_set_to_its_old_value_stays_shared() {
        let before = pod();
        let mut after = before.clone();
        after.change("spec", |spec| spec["containers"][0]["name"] = json!("c"));
        assert_eq!(shared(&before, &after), ["kind", "spec", "status"]);
        after.change("spec", |spec| spec["containers"][0]["name"] = json!("d"));
        assert_eq!(shared(&before, &after), ["kind", "status"]);
        assert_eq!(before, pod());
        after.change("data", |_| unreachable!());
    }
}
