//! The members of a JSON object. The versions of an object share the members that a write does not change.

use std::{
    fmt::{self, Formatter},
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::object::json;

/// Members, ordered by key. The cost of a copy grows with the number of members, not with their content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members(Vec<(Key, Arc<Value>)>);

type Key = Arc<str>;

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
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    members.insert(&key, value);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(All)
    }
}

impl From<Map<String, Value>> for Members {
    fn from(members: Map<String, Value>) -> Self {
        let member = |(key, value): (String, Value)| (key.into(), Arc::new(value));
        Self(members.into_iter().map(member).collect())
    }
}

impl Members {
    fn find(&self, key: &str) -> Option<&Arc<Value>> {
        let mut members = self.0.iter();
        members.find(|(name, _)| **name == *key).map(|(_, member)| member)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.find(key).map(|member| &**member)
    }

    /// Returns a member for changes; it is no longer shared.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let mut members = self.0.iter_mut();
        let (_, member) = members.find(|(name, _)| **name == *key)?;
        Some(Arc::make_mut(member))
    }

    /// Changes a member. It stays shared if its value does not change.
    pub(crate) fn change(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        let Some(member) = self.find(key) else { return };
        if Arc::strong_count(member) == 1 {
            return self.get_mut(key).map_or((), change);
        }
        let mut value = Value::clone(member);
        change(&mut value);
        if value != **member {
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
        self.0.iter().map(|(key, member)| (&**key, &**member))
    }

    pub(crate) fn insert(&mut self, key: &str, value: Value) {
        self.put(key, Arc::new(value));
    }

    fn put(&mut self, key: &str, member: Arc<Value>) {
        match self.0.binary_search_by(|(name, _)| (**name).cmp(key)) {
            Ok(at) => self.0[at].1 = member,
            Err(at) => self.0.insert(at, (key.into(), member)),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(name, _)| **name == *key)?;
        Some(Arc::unwrap_or_clone(self.0.remove(at).1))
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
                Some(member) => json_patch::merge(member, &value),
                None => self.insert(&key, json::strip_nulls(&value)),
            }
        }
    }

    /// Keeps the members for which `is_kept` returns true.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str, &Value) -> bool) {
        self.0.retain(|(key, member)| is_kept(key, member));
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
                let value = Value::clone(&member);
                shared.0.push((key, member));
                value
            } else {
                Arc::unwrap_or_clone(member)
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
                Some((key, member)) if *member == value => (key, member),
                _ => (key.into(), Arc::new(value)),
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
            write(text, &**key);
            text.push(b':');
            write(text, &**member);
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
        let is_shared = |(key, member): &&(Key, Arc<Value>)| {
            other.find(key).is_some_and(|other| Arc::ptr_eq(member, other))
        };
        self.0.iter().filter(is_shared).map(|(key, _)| &**key).collect()
    }
}

/// Members that were shared when they were taken.
#[derive(Default)]
pub(crate) struct SharedMembers(Vec<(Key, Arc<Value>)>);

/// Writing JSON to memory does not fail.
fn write<T: serde::Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(text, value);
}
