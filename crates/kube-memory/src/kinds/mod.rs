//! The built-in and custom kinds that are served, and the lookup of the kind of a path.

pub(crate) mod columns;
pub(crate) mod decode;
pub(crate) mod definition;
pub(crate) mod events;
pub(crate) mod json_path;
pub(crate) mod leases;
pub(crate) mod openapi;
pub(crate) mod openapi_v2;
pub(crate) mod pods;
#[cfg(feature = "rules")]
pub(crate) mod rules;
pub(crate) mod scale;
pub(crate) mod schema;
pub(crate) mod services;
pub(crate) mod stored;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use kube_schema::Schema;
use serde_json::Value;

use crate::kinds::columns::Column;
use crate::kinds::scale::ScalePaths;
use crate::object::{document::Document, metadata::NameRule};

/// The behavior that a kind has in addition to that of its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Pod,
    Service,
    Event,
    Node,
    Namespace,
    Lease,
    Secret,
    Quota,
    Plain,
    /// A built-in kind whose objects are stored as they are sent.
    Stored,
    Definition,
    Custom,
}

/// One version of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) group: String,
    pub(crate) name: String,
    /// `group/name`, or `name` alone in the core group.
    pub(crate) api_version: String,
    pub(crate) served: bool,
    /// True if `/status` is a sub-resource.
    pub(crate) status: bool,
    /// The paths of `/scale`, if it is a sub-resource.
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) schema: Option<Arc<Schema>>,
    /// True if the schema has rules in CEL.
    pub(crate) rules: bool,
    /// The columns in tables after the name. Empty for built-in kinds.
    pub(crate) columns: Vec<Column>,
    #[cfg(feature = "rules")]
    pub(crate) evaluated_rules: Option<Arc<rules::Rules>>,
}

impl Version {
    pub(crate) fn new(group: &str, name: &str) -> Self {
        let api_version = if group.is_empty() {
            name.to_owned()
        } else {
            format!("{group}/{name}")
        };
        Self {
            group: group.to_owned(),
            name: name.to_owned(),
            api_version,
            served: true,
            status: false,
            scale: None,
            schema: None,
            rules: false,
            columns: Vec::new(),
            #[cfg(feature = "rules")]
            evaluated_rules: None,
        }
    }
}

/// A kind with all its versions.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) family: Family,
    pub(crate) versions: Vec<Version>,
    /// The index of the version in which objects are stored.
    pub(crate) storage: usize,
    /// True if `metadata.generation` counts changes of the desired state.
    pub(crate) generation: bool,
    /// True if the response to a deletion is the object instead of a Status.
    pub(crate) returns_deleted: bool,
}

impl Kind {
    fn built_in(family: Family, kind: &str, plural: &str, group: &str, version: &str) -> Self {
        let mut first = Version::new(group, version);
        first.status = matches!(
            family,
            Family::Pod
                | Family::Service
                | Family::Node
                | Family::Namespace
                | Family::Quota
                | Family::Definition
        );
        Self {
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            list_kind: format!("{kind}List"),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: !matches!(family, Family::Node | Family::Namespace | Family::Definition),
            family,
            versions: vec![first],
            storage: 0,
            generation: matches!(family, Family::Pod | Family::Definition),
            returns_deleted: matches!(family, Family::Pod | Family::Service | Family::Quota)
                || kind == "ServiceAccount",
        }
    }

    /// Returns the stored version, which also contains the API group.
    pub(crate) fn stored(&self) -> Option<&Version> {
        self.versions.get(self.storage)
    }

    pub(crate) fn name_rule(&self) -> NameRule {
        match self.family {
            Family::Service | Family::Namespace => NameRule::Label1123,
            _ => NameRule::Subdomain,
        }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.family == Family::Custom
    }

    /// Returns true if a PUT without `resourceVersion` overwrites any stored version.
    pub(crate) fn unconditional_update(&self) -> bool {
        !matches!(self.family, Family::Lease | Family::Definition | Family::Custom)
    }

    /// Returns true if a PUT creates an object that does not exist.
    pub(crate) fn create_on_update(&self) -> bool {
        matches!(self.family, Family::Lease | Family::Event)
    }
}

/// A kind in the version of a request.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) id: usize,
    pub(crate) kind: Arc<Kind>,
    pub(crate) version: usize,
}

impl Target {
    fn request_version(&self) -> Option<&Version> {
        self.kind.versions.get(self.version)
    }

    pub(crate) fn group(&self) -> &str {
        self.request_version()
            .map_or("", |version| version.group.as_str())
    }

    pub(crate) fn api_version(&self) -> &str {
        self.request_version()
            .map_or("", |version| version.api_version.as_str())
    }

    pub(crate) fn version_name(&self) -> &str {
        self.request_version().map_or("", |version| version.name.as_str())
    }

    pub(crate) fn has_status(&self) -> bool {
        self.request_version().is_some_and(|version| version.status)
    }

    pub(crate) fn scale(&self) -> Option<&ScalePaths> {
        self.request_version().and_then(|version| version.scale.as_ref())
    }

    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        self.request_version().and_then(|version| version.schema.as_ref())
    }

    /// Returns the columns of a custom kind in tables after the name.
    pub(crate) fn columns(&self) -> &[Column] {
        self.request_version()
            .map_or(&[], |version| version.columns.as_slice())
    }

    #[cfg(feature = "rules")]
    pub(crate) fn evaluated_rules(&self) -> Option<&Arc<rules::Rules>> {
        self.request_version()
            .and_then(|version| version.evaluated_rules.as_ref())
    }

    pub(crate) fn has_rules(&self) -> bool {
        self.request_version().is_some_and(|version| version.rules)
    }

    pub(crate) fn is_events_group(&self) -> bool {
        self.kind.family == Family::Event && !self.group().is_empty()
    }

    /// Returns `plural.group`, the name of the resource in most messages.
    pub(crate) fn resource(&self) -> String {
        join(&self.kind.plural, self.group())
    }

    /// Returns `Kind.group`, the name in messages about invalid objects.
    pub(crate) fn qualified_kind(&self) -> String {
        join(&self.kind.kind, self.group())
    }

    /// Returns the key of an object in etcd, which some messages contain.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        let folder = match self.kind.family {
            Family::Service => "services/specs".to_owned(),
            Family::Node => "minions".to_owned(),
            Family::Custom => format!("{}/{}", self.group(), self.kind.plural),
            Family::Definition => format!("{}/{}", self.group(), self.kind.plural),
            _ => self.kind.plural.clone(),
        };
        let parts = ["/registry", &folder, namespace, name];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("/")
    }

    /// Returns true if responses contain objects exactly as they are stored.
    pub(crate) fn is_stored_version(&self) -> bool {
        self.version == self.kind.storage
    }

    /// Converts a stored object to this version.
    pub(crate) fn in_request_version<'a>(&self, stored: &'a Document) -> Cow<'a, Document> {
        if self.is_stored_version() {
            return Cow::Borrowed(stored);
        }
        let mut document = stored.clone();
        if self.is_events_group() {
            events::to_events_group(&mut document);
        }
        set_api_version(&mut document, self.api_version());
        Cow::Owned(document)
    }

    /// Converts an object of this version to the stored version.
    pub(crate) fn to_stored_version(&self, document: &mut Document) {
        if self.is_events_group() {
            events::to_core_group(document);
        }
        if let Some(stored) = self.kind.stored() {
            set_api_version(document, &stored.api_version);
        }
    }
}

fn join(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

fn set_api_version(document: &mut Document, api_version: &str) {
    if document.contains_key("apiVersion") && document.text("apiVersion") != api_version {
        document.insert("apiVersion", Value::from(api_version));
    }
}

/// A kind to serve without a CustomResourceDefinition. Its objects may have any fields.
#[derive(Debug, Clone)]
pub struct Description {
    pub(crate) kind: Kind,
}

impl Description {
    /// Describes a namespaced kind, for example `Description::new("batch", "v1", "Job", "jobs")`, with
    /// `metadata.generation` and without a `status` sub-resource. `group` is empty for the core group.
    #[must_use]
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let mut kind = Kind::built_in(Family::Custom, kind, plural, group, version);
        kind.generation = true;
        Self { kind }
    }

    /// Makes the objects of this kind cluster-scoped: they have no namespace.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.kind.namespaced = false;
        self
    }

    /// Makes `/status` a sub-resource: writes to it change only the status, and other writes do not change it.
    #[must_use]
    pub fn with_status(mut self) -> Self {
        for version in &mut self.kind.versions {
            version.status = true;
        }
        self
    }
}

/// The number of a kind and the index of one of its versions, by plural.
type Plurals = BTreeMap<String, (usize, usize)>;

/// The kinds that are served, by group, version and plural.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    paths: BTreeMap<String, BTreeMap<String, Plurals>>,
    /// The numbers of kinds by group and kind, for owner references.
    owners: BTreeMap<String, BTreeMap<String, usize>>,
    kinds: Vec<Option<Arc<Kind>>>,
}

impl Registry {
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Target> {
        let (id, index) = *self.paths.get(group)?.get(version)?.get(plural)?;
        let kind = self.kinds.get(id)?.clone()?;
        kind.versions.get(index).filter(|version| version.served)?;
        Some(Target {
            id,
            kind,
            version: index,
        })
    }

    /// Returns the kind of an owner reference, in its stored version.
    pub(crate) fn owner(&self, api_version: &str, kind: &str) -> Option<Target> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let id = *self.owners.get(group)?.get(kind)?;
        let found = self.stored(id)?;
        found
            .kind
            .versions
            .iter()
            .any(|version| version.api_version == api_version)
            .then_some(found)
    }

    /// Returns the kind with this number, in its stored version.
    pub(crate) fn stored(&self, id: usize) -> Option<Target> {
        let kind = self.kinds.get(id)?.clone()?;
        let version = kind.storage;
        Some(Target { id, kind, version })
    }

    /// Returns a kind by `plural` or `plural.group`.
    pub(crate) fn by_plural(&self, name: &str) -> Option<Target> {
        let (plural, group) = match name.split_once('.') {
            Some((plural, group)) => (plural, Some(group)),
            None => (name, None),
        };
        let id = self.kinds.iter().position(|kind| {
            kind.as_ref().is_some_and(|kind| {
                kind.plural == plural
                    && group.is_none_or(|group| kind.versions.iter().any(|version| version.group == group))
            })
        })?;
        self.stored(id)
    }

    /// Returns all kinds in the order in which they were added.
    pub(crate) fn all(&self) -> impl Iterator<Item = Target> {
        (0..self.kinds.len()).filter_map(|id| self.stored(id))
    }

    /// Adds a kind, or replaces the one with the same group and plural. Returns its number.
    pub(crate) fn add(&mut self, kind: Kind) -> usize {
        let group = kind
            .stored()
            .map(|version| version.group.clone())
            .unwrap_or_default();
        let known = self
            .paths
            .get(&group)
            .and_then(|versions| versions.values().find_map(|plurals| plurals.get(&kind.plural)))
            .map(|(id, _)| *id);
        let id = match known {
            Some(id) => {
                self.remove(id);
                id
            }
            None => {
                self.kinds.push(None);
                self.kinds.len() - 1
            }
        };
        for (index, version) in kind.versions.iter().enumerate() {
            self.paths
                .entry(version.group.clone())
                .or_default()
                .entry(version.name.clone())
                .or_default()
                .insert(kind.plural.clone(), (id, index));
            self.owners
                .entry(version.group.clone())
                .or_default()
                .insert(kind.kind.clone(), id);
        }
        if let Some(slot) = self.kinds.get_mut(id) {
            *slot = Some(Arc::new(kind));
        }
        id
    }

    pub(crate) fn remove(&mut self, id: usize) {
        for versions in self.paths.values_mut() {
            for plurals in versions.values_mut() {
                plurals.retain(|_, (other, _)| *other != id);
            }
            versions.retain(|_, plurals| !plurals.is_empty());
        }
        self.paths.retain(|_, versions| !versions.is_empty());
        for kinds in self.owners.values_mut() {
            kinds.retain(|_, other| *other != id);
        }
        if let Some(slot) = self.kinds.get_mut(id) {
            *slot = None;
        }
    }
}

/// Returns the kinds that every cluster serves.
pub(crate) fn built_in() -> Vec<Kind> {
    let core = |family, kind: &str, plural: &str, short: &str| {
        let mut kind = Kind::built_in(family, kind, plural, "", "v1");
        kind.short_names = if short.is_empty() {
            Vec::new()
        } else {
            vec![short.to_owned()]
        };
        kind
    };
    let in_all = |mut kind: Kind| {
        kind.categories = vec!["all".to_owned()];
        kind
    };
    let mut event = core(Family::Event, "Event", "events", "ev");
    event.versions.push(Version::new("events.k8s.io", "v1"));
    let mut definition = Kind::built_in(
        Family::Definition,
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "apiextensions.k8s.io",
        "v1",
    );
    definition.short_names = vec!["crd".to_owned(), "crds".to_owned()];
    definition.categories = vec!["api-extensions".to_owned()];
    vec![
        core(Family::Namespace, "Namespace", "namespaces", "ns"),
        core(Family::Node, "Node", "nodes", "no"),
        in_all(core(Family::Pod, "Pod", "pods", "po")),
        in_all(core(Family::Service, "Service", "services", "svc")),
        event,
        core(Family::Plain, "ConfigMap", "configmaps", "cm"),
        core(Family::Secret, "Secret", "secrets", ""),
        core(Family::Plain, "ServiceAccount", "serviceaccounts", "sa"),
        core(Family::Quota, "ResourceQuota", "resourcequotas", "quota"),
        Kind::built_in(Family::Lease, "Lease", "leases", "coordination.k8s.io", "v1"),
        definition,
    ]
}
