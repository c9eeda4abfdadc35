//! The storage that keeps objects of a cluster beyond its process, and their form in it.

use std::{collections::BTreeMap, io};

use serde::{Deserialize, Serialize};

use crate::kinds::Target;
use crate::object::document::Document;
use crate::store::object::{Applied, Change, Object};

/// The key of the entry with the counters of a cluster. No object has it, because no resource has an empty name.
pub(crate) const COUNTERS: &str = "/";

/// Stores the objects of a cluster: see [`Cluster::persist`](crate::Cluster::persist).
pub trait Storage: Send {
    /// Returns all entries, in any order. No entries mean a new cluster.
    ///
    /// # Errors
    /// They cannot be read. The error is that of [`Cluster::persist`](crate::Cluster::persist).
    fn load(&mut self) -> io::Result<Vec<(String, Vec<u8>)>>;

    /// Stores all changed entries of one request, or none of them. An entry without a value is removed, if it exists.
    /// The cluster is locked during the call.
    ///
    /// # Errors
    /// They cannot be stored. The client gets the text in a response with code 500.
    fn commit(&mut self, changed: &[(String, Option<Vec<u8>>)]) -> io::Result<()>;
}

/// The counters of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub(crate) version: u64,
    pub(crate) uids: u64,
    pub(crate) suffixes: u64,
    pub(crate) addresses: u32,
}

/// An object in a storage.
#[derive(Deserialize)]
struct Stored {
    object: Document,
    applied: Option<Applied>,
}

/// Returns the key of an object: its resource, namespace and name.
pub(crate) fn key(target: &Target, object: &Object) -> String {
    [&target.resource(), object.namespace(), object.name()].join("/")
}

/// Returns the resource in an object's key.
pub(crate) fn resource_of(key: &str) -> &str {
    key.split('/').next().unwrap_or_default()
}

/// Returns the entries that some changes of known targets make, each key once.
pub(crate) fn entries<'a>(
    changes: impl DoubleEndedIterator<Item = (&'a Target, &'a Change)>,
) -> io::Result<Vec<(String, Option<Vec<u8>>)>> {
    let mut entries = BTreeMap::new();
    // The last change of an object comes first.
    for (target, change) in changes.rev() {
        let key = key(target, change.object());
        if entries.contains_key(&key) {
            continue;
        }
        let value = match change.is_removal() {
            true => None,
            false => Some(encode(change.object())?),
        };
        entries.insert(key, value);
    }
    Ok(entries.into_iter().collect())
}

/// Returns the value of an object's entry.
pub(crate) fn encode(object: &Object) -> io::Result<Vec<u8>> {
    let mut value = b"{\"object\":".to_vec();
    value.extend_from_slice(&object.whole());
    if let Some(applied) = &object.applied {
        value.extend_from_slice(b",\"applied\":");
        serde_json::to_writer(&mut value, &**applied)?;
    }
    value.push(b'}');
    Ok(value)
}

/// Returns the object in an entry.
///
/// # Errors
/// The value is not that of an object with this key.
pub(crate) fn decode(target: &Target, entry_key: &str, value: &[u8]) -> io::Result<Object> {
    let damaged = |problem: &str| {
        let text = format!("the entry {entry_key:?} is damaged: {problem}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    };
    let stored: Stored = serde_json::from_slice(value).map_err(|error| damaged(&error.to_string()))?;
    let version = stored.object.meta_text("resourceVersion").parse();
    let version = version.map_err(|_| damaged("metadata.resourceVersion must be a number"))?;
    let object = Object::new(stored.object, version, stored.applied.map(Into::into));
    if key(target, &object) != entry_key {
        return Err(damaged("it contains an object of another name"));
    }
    Ok(object)
}
