//! Partially decoded children.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use training_job::api::labels;
use training_job::job::{JobObject, ObjectKind};
use training_job::plan::ChildKind;
use training_job::plan::observed::Observed;

use super::super::clock::Clock;

pub(crate) trait Child: Clone + Debug + Send + Sync + 'static {
    /// The decoded part of an object other than its metadata.
    type Body: Clone + Debug + Send + Sync;
    /// True if a newly created object has no information beyond its metadata.
    const STARTS_WITHOUT_BODY: bool;
    fn decode<'de, D: Deserializer<'de>>(object: D) -> Result<(ObjectMeta, Self::Body), D::Error>;
    /// Returns the record of a child of this kind with this metadata and body.
    fn record(kind: ChildKind, meta: &ObjectMeta, body: &Self::Body) -> Self;
    fn name(&self) -> &str;
    fn uid(&self) -> &str;
    fn deleting(&mut self) -> &mut bool;
    /// Returns the map of `observed` for this kind, which must be of this type.
    fn map(observed: &mut Observed, kind: ChildKind) -> &mut BTreeMap<String, Arc<Self>>;
    /// Returns true if the child has the content of `wanted`, to the extent that the record shows it.
    fn has(&self, _wanted: &JobObject) -> bool {
        true
    }
    /// Returns true if the child no longer occupies capacity on a node.
    fn has_ended(&self) -> bool {
        false
    }
    /// Copies facts that the object itself does not contain from the record of its previous state, if there is one.
    fn inherit_from(&mut self, _before: Option<&Self>, _clock: &dyn Clock) {}
    /// Handles the removal of the child. `ours` is true if this controller deleted it.
    fn on_removed(&self, _observed: &mut Observed, _ours: bool) {}
}

/// The decoded part of a child. Most of the spec and all managed fields of pods and services are skipped: they are
/// most of the bytes, take time to decode, and an error in them must not hide the child.
#[derive(Clone, Debug)]
pub(crate) struct PartialChild<C: Child> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) body: C::Body,
}

impl<'de, C: Child> Deserialize<'de> for PartialChild<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (metadata, body) = C::decode(deserializer)?;
        Ok(Self { metadata, body })
    }
}

/// A value of this type, or any other JSON. A wrong type must not hide the pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Lenient<T> {
    Is(T),
    IsNot(IgnoredAny),
}

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self::IsNot(IgnoredAny)
    }
}

impl<T> Lenient<T> {
    pub(super) fn get(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::IsNot(_) => None,
        }
    }
}

/// Decodes metadata, spec and status of an object of this kind, to the extent of these types.
///
/// # Errors
/// A decoded field is invalid, or the object is of another kind, for example a Status instead of a pod. Objects in a
/// list have no kind, and the response to a create may be `PartialObjectMetadata`; both are accepted.
pub(super) fn decode<'de, D: Deserializer<'de>, P: Deserialize<'de>, S: Deserialize<'de>>(
    object: D,
    kind: &str,
) -> Result<(ObjectMeta, Option<P>, Option<S>), D::Error> {
    #[derive(Deserialize)]
    struct Fields<'a, P, S> {
        #[serde(borrow)]
        kind: Option<Cow<'a, str>>,
        #[serde(default, deserialize_with = "read")]
        metadata: ObjectMeta,
        spec: Option<P>,
        status: Option<S>,
    }
    let fields = Fields::deserialize(object)?;
    match fields.kind {
        Some(other) if other != kind && other != "PartialObjectMetadata" => {
            Err(D::Error::custom(format!("must be a {kind} (is a {other})")))
        }
        _ => Ok((fields.metadata, fields.spec, fields.status)),
    }
}

/// The decoded part of the metadata.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default, deserialize_with = "attempt")]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creation_timestamp: Lenient<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    #[serde(default)]
    finalizers: Lenient<Vec<String>>,
    #[serde(default, deserialize_with = "operator")]
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_any(OnlyKeys(|key| key == labels::RESTART_ATTEMPT))
}

fn operator<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_any(OnlyKeys(labels::is_own))
}

/// A visitor that keeps only the entries of a map whose keys match.
struct OnlyKeys(fn(&str) -> bool);

impl<'de> Visitor<'de> for OnlyKeys {
    type Value = Option<BTreeMap<String, String>>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Option<BTreeMap<_, _>> = None;
        while let Some(wanted) = map.next_key_seed(KeyMatches(self.0))? {
            if let Some(key) = wanted {
                found.get_or_insert_default().insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A seed that copies only a key that matches.
struct KeyMatches(fn(&str) -> bool);

impl<'de> DeserializeSeed<'de> for KeyMatches {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<String>, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyMatches {
    type Value = Option<String>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<String>, E> {
        Ok((self.0)(key).then(|| key.to_owned()))
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = Option::<Meta>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ObjectMeta {
        annotations: meta.annotations,
        creation_timestamp: meta.creation_timestamp.get().cloned(),
        deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
        deletion_timestamp: meta.deletion_timestamp,
        finalizers: meta.finalizers.get().cloned(),
        labels: meta.labels,
        name: meta.name,
        namespace: meta.namespace,
        owner_references: meta.owner_references,
        resource_version: meta.resource_version,
        uid: meta.uid,
        ..ObjectMeta::default()
    })
}

impl<C: Child> PartialChild<C> {
    pub(crate) fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Returns the record that the cache keeps.
    pub(crate) fn record(&self, kind: ChildKind) -> C {
        C::record(kind, &self.metadata, &self.body)
    }
}

impl<C: Child> Resource for PartialChild<C> {
    type DynamicType = ObjectKind;
    type Scope = DynamicResourceScope;

    fn kind(kind: &ObjectKind) -> Cow<'_, str> {
        kind.kind.into()
    }

    fn group(kind: &ObjectKind) -> Cow<'_, str> {
        kind.group.into()
    }

    fn version(kind: &ObjectKind) -> Cow<'_, str> {
        kind.version.into()
    }

    fn plural(kind: &ObjectKind) -> Cow<'_, str> {
        kind.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1::Role;
    use kube::Resource;

    use training_job::api::labels;
    use training_job::job::ObjectKind;
    use training_job::plan::ChildKind;
    use training_job::plan::observed::{ContainerKind, DeletionTimes, Phase, PodRecord, ServiceRecord};

    use super::PartialChild;

    #[test]
    fn children_have_the_paths_of_their_kinds() {
        let path = |kind: ChildKind, namespace| {
            let kind = kind.object_kind();
            PartialChild::<ServiceRecord>::url_path(&kind, namespace)
        };
        assert_eq!(path(ChildKind::Pod, Some("ns")), "/api/v1/namespaces/ns/pods");
        assert_eq!(path(ChildKind::Service, None), "/api/v1/services");
        let role = ChildKind::Object(ObjectKind::of::<Role>());
        let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/roles";
        assert_eq!(path(role, Some("ns")), roles);
    }

    #[test]
    fn node_and_sidecars_are_decoded_from_a_pods_spec() {
        let pod = r#"{
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30,
                "finalizers": ["example.com/hold"]},
            "spec": {"nodeName": "n1", "initContainers": [7, {"name": "once"}, {"name": "log", "restartPolicy": "Always"}]},
            "status": {"phase": "Running", "initContainerStatuses": [
                {"name": "once", "image": "", "imageID": "", "ready": true, "restartCount": 1},
                {"name": "log", "image": "", "imageID": "", "ready": true, "restartCount": 1}]}
        }"#;
        let record = serde_json::from_str::<PartialChild<PodRecord>>(pod)
            .unwrap()
            .record(ChildKind::Pod);
        assert_eq!(record.node.as_deref(), Some("n1"));
        let kinds: Vec<_> = record.containers.iter().map(|c| c.kind).collect();
        assert_eq!(kinds, [ContainerKind::Init, ContainerKind::Sidecar]);
        let requested = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(record.deletion.unwrap().requested, requested);
        assert_eq!(*record.finalizers, ["example.com/hold"]);
    }

    #[test]
    fn only_decoded_fields_can_make_a_pod_unreadable() {
        let pod = r#"{
            "kind": "Pod", "spec": {"containers": {"of": ["no", "kind"]}, "volumes": 7, "initContainers": {"a": 7}, "nodeName": 7},
            "metadata": {"name": "a", "uid": "1", "managedFields": "none", "creationTimestamp": {}, "finalizers": 7,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": null, "annotations": {"a": 7, "training.kubeflow.org/restart-attempt": "3"},
                "labels": {"l": {}, "training.kubeflow.org/operator-name": "any", "m": "n"}},
            "status": {"phase": "Running"}
        }"#;
        let seen = serde_json::from_str::<PartialChild<PodRecord>>(pod).unwrap();
        let operator = [(labels::OPERATOR_NAME.to_owned(), "any".to_owned())];
        assert_eq!(seen.metadata.labels, Some(operator.into()));
        let record = seen.record(ChildKind::Pod);
        let deleted = "2026-01-01T00:00:00Z".parse().unwrap();
        let expected = PodRecord {
            name: "a".to_owned(),
            uid: "1".to_owned(),
            attempt: 3,
            deleting: true,
            deletion: Some(DeletionTimes {
                requested: deleted,
                due: deleted,
            }),
            phase: Phase::Running,
            ..PodRecord::default()
        };
        assert_eq!(record.own_labels.as_ref().map(|labels| labels.len()), Some(1));
        let own_labels = None;
        assert_eq!(PodRecord { own_labels, ..record }, expected);
        for wrong in [
            r#"{"metadata": {"name": 3}}"#,
            r#"{"metadata": {"labels": {"training.kubeflow.org/operator-name": 3}}}"#,
            r#"{"metadata": {"annotations": 3}}"#,
            r#"{"status": {"phase": []}}"#,
            r#"{"kind": "Status", "metadata": {}, "status": "Failure"}"#,
            r#"{"metadata": {}, "kind": "Service"}"#,
        ] {
            assert!(
                serde_json::from_str::<PartialChild<PodRecord>>(wrong).is_err(),
                "{wrong}"
            );
        }
        for empty in [
            "{}",
            r#"{"metadata": null, "status": null}"#,
            r#"{"metadata": {"labels": null}}"#,
        ] {
            let seen: PartialChild<PodRecord> = serde_json::from_str(empty).unwrap();
            let own_labels = Some(Box::default());
            let expected = PodRecord {
                own_labels,
                ..PodRecord::default()
            };
            assert_eq!(seen.record(ChildKind::Pod), expected);
        }
    }
}
