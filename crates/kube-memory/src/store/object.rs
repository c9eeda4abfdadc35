//! Stored objects and their changes.

use std::{collections::BTreeMap, fmt, ops::Index, sync::Arc, sync::OnceLock};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::kinds::{Kind, Target};
use crate::object::{document::Document, members::Members};

/// The last applied configuration of each applier, by its name (and `/status` for the sub-resource).
pub(crate) type Applied = BTreeMap<String, Value>;

/// A stored object. Its JSON never changes; a write makes a new object.
#[derive(Debug)]
pub struct Object {
    document: Document,
    version: u64,
    pub(crate) applied: Option<Arc<Applied>>,
    /// The change that made the object.
    pub(crate) action: Action,
    value: OnceLock<Value>,
    metadata: OnceLock<Value>,
    line: OnceLock<Bytes>,
    bare: OnceLock<Bytes>,
}

/// Returns a member, or null if it does not exist. Nothing is copied.
impl Index<&str> for Object {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

impl Object {
    /// Makes an object of this version, which is written into the metadata.
    pub(crate) fn new(mut document: Document, version: u64, applied: Option<Arc<Applied>>) -> Self {
        document.set_meta("resourceVersion", Value::from(version.to_string()));
        Self {
            document,
            version,
            applied,
            action: Action::Modified,
            value: OnceLock::new(),
            metadata: OnceLock::new(),
            line: OnceLock::new(),
            bare: OnceLock::new(),
        }
    }

    /// Sets the action that made the object.
    pub(crate) fn made_by(mut self, action: Action) -> Self {
        self.action = action;
        self
    }

    /// Makes an object that a dry run did not store. It has no version.
    pub(crate) fn unstored(document: Document) -> Self {
        let mut object = Self::new(document, 0, None);
        if let Some(meta) = object.document.metadata_mut() {
            meta.remove("resourceVersion");
        }
        object
    }

    /// Returns the object's JSON as one value, which is built on the first call.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.document.to_value())
    }

    /// Returns a member of the object, for example `status`. For a member of its metadata, [`meta`](Self::meta) is
    /// faster.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        if let ("metadata", Some(metadata)) = (key, self.document.metadata()) {
            return Some(self.metadata.get_or_init(|| Value::Object(metadata.to_map())));
        }
        self.document.get(key)
    }

    /// Returns `metadata.resourceVersion` as a number.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.version
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// Returns a member of the object's metadata, for example `labels`.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.document.meta(key)
    }

    pub(crate) fn meta_text(&self, key: &str) -> &str {
        self.document.meta_text(key)
    }

    pub(crate) fn name(&self) -> &str {
        self.meta_text("name")
    }

    pub(crate) fn namespace(&self) -> &str {
        self.meta_text("namespace")
    }

    pub(crate) fn uid(&self) -> &str {
        self.meta_text("uid")
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.meta("deletionTimestamp").is_some()
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.document.has_finalizer(name)
    }

    /// Returns the JSON text, as a part of the watch event.
    pub(crate) fn whole(&self) -> Bytes {
        let line = self.line();
        let end = line.len() - LINE_END.len();
        line.slice(line_start(self.action.as_str()).len()..end)
    }

    /// Returns the watch event of the change that made the object, in the stored version. It is written once for all
    /// watches and responses; otherwise a job's life takes 5.7 % more instructions (callgrind of benches/memory.rs).
    pub(crate) fn line(&self) -> Bytes {
        let line = self.line.get_or_init(|| {
            // The capacity is enough for most pods.
            let mut line = Vec::with_capacity(2_048);
            line.extend_from_slice(line_start(self.action.as_str()).as_bytes());
            self.document.encode(&mut line, |_| true);
            line.extend_from_slice(LINE_END);
            line.shrink_to_fit();
            line.into()
        });
        line.clone()
    }

    /// Returns the JSON text as in lists of built-in kinds: without `apiVersion` and `kind`.
    pub(crate) fn bare(&self) -> Bytes {
        self.bare.get_or_init(|| bare(&self.document)).clone()
    }
}

/// Returns the JSON text of an object.
pub(crate) fn whole(document: &Document) -> Bytes {
    let mut text = Vec::new();
    document.encode(&mut text, |_| true);
    text.into()
}

/// Returns the JSON text of an object without `apiVersion` and `kind`.
pub(crate) fn bare(document: &Document) -> Bytes {
    let mut text = Vec::new();
    document.encode(&mut text, |key| !matches!(key, "apiVersion" | "kind"));
    text.into()
}

pub(crate) fn encode(value: &Value) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

/// Returns the `PartialObjectMetadata` of an object.
pub(crate) fn metadata_only(object: &Object) -> Value {
    let metadata = object
        .document
        .metadata()
        .map(Members::to_map)
        .unwrap_or_default();
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata})
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was removed.
    Deleted,
}

impl Action {
    /// Returns the word in watch events: `ADDED`, `MODIFIED` or `DELETED`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change of one stored object. `Display` writes it as a line of a log.
#[derive(Debug)]
pub struct Change {
    pub(crate) kind: Arc<Kind>,
    pub(crate) object: Arc<Object>,
    pub(crate) previous: Option<Arc<Object>>,
}

impl Change {
    pub(crate) fn new(kind: Arc<Kind>, object: Arc<Object>, previous: Option<Arc<Object>>) -> Self {
        Self {
            kind,
            object,
            previous,
        }
    }

    /// Returns the kind of the change.
    #[must_use]
    pub fn action(&self) -> Action {
        self.object.action
    }

    pub(crate) fn is_removal(&self) -> bool {
        self.action() == Action::Deleted
    }

    /// Returns the resource's name in paths, for example `pods`.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.kind.plural
    }

    /// Returns the object's kind, for example `Pod`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind.kind
    }

    /// Returns the object's namespace; empty for kinds without namespaces.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.object.namespace()
    }

    /// Returns the object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// Returns the version that this change made. It is higher than that of every change before it, of any kind.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.object.version
    }

    /// Returns the object after the change. For a deletion, returns its last state with the deletion's version.
    #[must_use]
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Returns the object before the change, or `None` for a creation.
    #[must_use]
    pub fn previous(&self) -> Option<&Arc<Object>> {
        self.previous.as_ref()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, action) = (self.resource_version(), self.action().as_str());
        write!(
            f,
            "{version} {action} {} {}/{} ",
            self.plural(),
            self.namespace(),
            self.name()
        )?;
        f.write_str(&String::from_utf8_lossy(&self.object.whole()))
    }
}

/// Returns the part of a watch event before its object.
fn line_start(word: &str) -> String {
    ["{\"type\":\"", word, "\",\"object\":"].concat()
}

/// The part of a watch event after its object.
const LINE_END: &[u8] = b"}\n";

/// Returns one watch event as a line.
pub(crate) fn event_line(word: &str, object: &[u8]) -> Bytes {
    let start = line_start(word);
    [start.as_bytes(), object, LINE_END].concat().into()
}

/// Returns a whole object in the version of the request.
pub(crate) fn encode_in_version(target: &Target, object: &Object) -> Bytes {
    if target.is_stored_version() {
        object.whole()
    } else {
        whole(&target.in_request_version(object.document()))
    }
}
