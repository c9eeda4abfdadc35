//! The members of a JSON object. The versions of an object share the members that a write does not change.

use std::{
    borrow::Borrow,
    fmt::{self, Formatter},
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::object::json;

/// Members, ordered by key. The cost of a copy grows with the number of members, not with their content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members(Vec<(Key, Arc<Member>)>);

/// Keys that many objects have. They are copied without an allocation and need no escaping in JSON. Without them a
/// job's life takes 3.4 % more instructions (callgrind of benches/memory.rs).
macro_rules! common {
    ($($key:literal)*) => {
        fn common(key: &str) -> Option<&'static str> {
            match key {
                $($key => Some($key),)*
                _ => None,
            }
        }

        #[cfg(test)]
        const COMMON: &[&str] = &[$($key),*];
    };
}

common! {
    "annotations"
    "apiVersion"
    "count"
    "creationTimestamp"
    "deletionGracePeriodSeconds"
    "deletionTimestamp"
    "finalizers"
    "firstTimestamp"
    "generateName"
    "generation"
    "involvedObject"
    "kind"
    "labels"
    "lastTimestamp"
    "message"
    "metadata"
    "name"
    "namespace"
    "ownerReferences"
    "reason"
    "reportingComponent"
    "reportingInstance"
    "resourceVersion"
    "source"
    "spec"
    "status"
    "type"
    "uid"
}

/// A key; one of the common keys if possible.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Common(&'static str),
    Other(Arc<str>),
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Common(key) => key,
            Self::Other(key) => key,
        }
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        common(key).map_or_else(|| Self::Other(key.into()), Self::Common)
    }
}

/// A member. Its JSON text is stored once several versions of an object share it. Without the text a job's life takes
/// 6.7 % more instructions (callgrind of benches/memory.rs).
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

    fn into_value(self: Arc<Self>) -> Value {
        Arc::try_unwrap(self).map_or_else(|shared| shared.value.clone(), |member| member.value)
    }
}

impl Clone for Member {
    /// Makes a copy for changes, so the text is not copied.
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

/// Lets `Arc` compare shared members by pointer.
impl Eq for Member {}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Key;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, key: &str) -> Result<Key, E> {
                Ok(key.into())
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some((key, value)) = map.next_entry::<Key, Value>()? {
                    members.put(key, Member::new(value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(All)
    }
}

impl From<Map<String, Value>> for Members {
    fn from(members: Map<String, Value>) -> Self {
        let member = |(key, value): (String, Value)| (Key::from(key.as_str()), Member::new(value));
        Self(members.into_iter().map(member).collect())
    }
}

impl Members {
    fn find(&self, key: &str) -> Option<&Arc<Member>> {
        let mut members = self.0.iter();
        members.find(|(name, _)| **name == *key).map(|(_, member)| member)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).map(|member| &member.value)
    }

    /// Returns a member for changes; it is no longer shared.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let mut members = self.0.iter_mut();
        let (_, member) = members.find(|(name, _)| **name == *key)?;
        let member = Arc::make_mut(member);
        member.text.take();
        Some(&mut member.value)
    }

    /// Changes a member. It stays shared if its value does not change.
    pub(crate) fn change(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        let Some(member) = self.find(key) else { return };
        if Arc::strong_count(member) == 1 {
            return self.get_mut(key).map_or((), change);
        }
        let mut value = member.value.clone();
        change(&mut value);
        if value != member.value {
            self.insert(key, value);
        }
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Returns the text of a member; empty if there is none.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, member)| (&**key, &member.value))
    }

    pub(crate) fn insert(&mut self, key: &str, value: Value) {
        self.put(key, Member::new(value));
    }

    fn put(&mut self, key: impl Into<Key> + Borrow<str>, member: Arc<Member>) {
        match self.0.binary_search_by(|(name, _)| (**name).cmp(key.borrow())) {
            Ok(at) => self.0[at].1 = member,
            Err(at) => self.0.insert(at, (key.into(), member)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(name, _)| **name == *key)?;
        Some(self.0.remove(at).1.into_value())
    }

    /// Applies a merge patch (RFC 7396). A plain value that does not change stays shared.
    pub(crate) fn merge(&mut self, patch: Map<String, Value>) {
        for (key, value) in patch {
            if value.is_null() {
                self.remove(&key);
                continue;
            }
            if !value.is_object() && self.get(&key) == Some(&value) {
                continue;
            }
            match self.get_mut(&key) {
                Some(member) => json::apply_merge_patch(member, value),
                None => self.insert(&key, json::strip_nulls(value)),
            }
        }
    }

    /// Keeps the members for which `is_kept` returns true.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str, &Value) -> bool) {
        self.0.retain(|(key, member)| is_kept(key, &member.value));
    }

    /// Takes a member from others, or removes it if they have none.
    pub(crate) fn share_from(&mut self, key: &str, from: &Self) {
        match from.find(key) {
            Some(member) => self.put(key, member.clone()),
            None => {
                self.remove(key);
            }
        }
    }

    /// Returns true if both have the same member, or neither has it.
    pub(crate) fn has_same(&self, key: &str, other: &Self) -> bool {
        self.find(key) == other.find(key)
    }

    /// Returns all members in one map.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        let member = |(key, value): (&str, &Value)| (key.to_owned(), value.clone());
        self.iter().map(member).collect()
    }

    /// Takes all members as one map. Also returns the shared members, for
    /// [`from_map_sharing`](Self::from_map_sharing).
    pub(crate) fn take_map(&mut self) -> (Map<String, Value>, SharedMembers) {
        let mut shared = SharedMembers::default();
        let mut map = Map::new();
        for (key, member) in std::mem::take(&mut self.0) {
            let name = key.to_string();
            let value = if Arc::strong_count(&member) > 1 {
                let value = member.value.clone();
                shared.0.push((key, member));
                value
            } else {
                member.into_value()
            };
            map.insert(name, value);
        }
        (map, shared)
    }

    /// Makes members of a map. Values that equal a shared member stay shared.
    pub(crate) fn from_map_sharing(map: Map<String, Value>, mut shared: SharedMembers) -> Self {
        let member = |(key, value): (String, Value)| {
            let known = shared.0.iter().position(|(name, _)| **name == *key);
            match known.map(|at| shared.0.swap_remove(at)) {
                Some((key, member)) if member.value == value => (key, member),
                _ => (Key::from(key.as_str()), Member::new(value)),
            }
        };
        Self(map.into_iter().map(member).collect())
    }

    /// Writes the members for which `is_shown` returns true as a JSON object, with `more` at its place in the order.
    pub(crate) fn encode(
        &self,
        text: &mut Vec<u8>,
        is_shown: fn(&str) -> bool,
        mut more: Option<(&str, &Self)>,
    ) {
        text.push(b'{');
        let start = text.len();
        let comma = |text: &mut Vec<u8>| {
            if text.len() > start {
                text.push(b',');
            }
        };
        for (key, member) in self.0.iter().filter(|(key, _)| is_shown(key)) {
            if let Some((further, members)) = more.take_if(|(further, _)| **further < **key) {
                comma(text);
                write(text, further);
                text.push(b':');
                members.encode(text, |_| true, None);
            }
            comma(text);
            match key {
                Key::Common(key) => {
                    text.push(b'"');
                    text.extend_from_slice(key.as_bytes());
                    text.push(b'"');
                }
                Key::Other(key) => write(text, &**key),
            }
            text.push(b':');
            if &**key == "spec" || Arc::strong_count(member) > 1 {
                if let Some(known) = member.text.get() {
                    text.extend_from_slice(known);
                } else {
                    let start = text.len();
                    write(text, &member.value);
                    member.text.get_or_init(|| text[start..].into());
                }
            } else {
                write(text, &member.value);
            }
        }
        if let Some((further, members)) = more {
            comma(text);
            write(text, further);
            text.push(b':');
            members.encode(text, |_| true, None);
        }
        text.push(b'}');
    }

    /// Returns the keys of the members that both share.
    #[cfg(test)]
    pub(crate) fn shared_keys<'a>(&'a self, other: &Self) -> Vec<&'a str> {
        let is_shared = |(key, member): &&(Key, Arc<Member>)| {
            other.find(key).is_some_and(|other| Arc::ptr_eq(member, other))
        };
        self.0.iter().filter(is_shared).map(|(key, _)| &**key).collect()
    }
}

/// Members that were shared when they were taken.
#[derive(Default)]
pub(crate) struct SharedMembers(Vec<(Key, Arc<Member>)>);

/// Writing JSON to memory does not fail.
fn write<T: serde::Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(text, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_keys_are_json_as_they_are() {
        for key in COMMON {
            assert_eq!(Key::from(*key), Key::Common(key));
            assert_eq!(serde_json::to_string(key).unwrap(), format!("\"{key}\""));
        }
    }
}
