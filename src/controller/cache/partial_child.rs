//! Children as far as they are decoded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::api::labels;
use crate::job::ObjectKind;

use super::child::Child;

/// What is decoded of a child. Of pods and services not the spec nor the managed fields: they are most of its bytes,
/// cost time to decode, and a mistake in them must not hide the child.
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

/// Metadata and status of an object of this kind.
///
/// # Errors
/// The object cannot be read that far, or is of another kind, such as a Status in the place of a pod. Objects in a list
/// name no kind, and the answer to a create may be metadata alone.
pub(super) fn decode<'de, D: Deserializer<'de>, S: Deserialize<'de>>(
    object: D,
    kind: &str,
) -> Result<(ObjectMeta, Option<S>), D::Error> {
    #[derive(Deserialize)]
    struct Fields<'a, S> {
        #[serde(borrow)]
        kind: Option<Cow<'a, str>>,
        #[serde(default, deserialize_with = "read")]
        metadata: ObjectMeta,
        status: Option<S>,
    }
    let fields = Fields::deserialize(object)?;
    match fields.kind {
        Some(other) if other != kind && other != "PartialObjectMetadata" => {
            Err(D::Error::custom(format!("it is a {other}, not a {kind}")))
        }
        _ => Ok((fields.metadata, fields.status)),
    }
}

/// The metadata that is decoded.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default, deserialize_with = "attempt")]
    annotations: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "operator")]
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_any(OnlyKey(labels::RESTART_ATTEMPT))
}

fn operator<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_any(OnlyKey(labels::OPERATOR_NAME))
}

/// A map of which only the entry under this key is kept.
struct OnlyKey(&'static str);

impl<'de> Visitor<'de> for OnlyKey {
    type Value = Option<BTreeMap<String, String>>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a map of texts")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(wanted) = map.next_key_seed(KeyEquals(self.0))? {
            if wanted {
                found = Some(BTreeMap::from([(self.0.to_owned(), map.next_value()?)]));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key equals this one, without a copy of it.
struct KeyEquals(&'static str);

impl<'de> DeserializeSeed<'de> for KeyEquals {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeyEquals {
    type Value = bool;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let meta = Option::<Meta>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ObjectMeta {
        annotations: meta.annotations,
        deletion_timestamp: meta.deletion_timestamp,
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
    /// Its metadata.
    pub(crate) fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// What the cache keeps of it.
    pub(crate) fn record(&self) -> C {
        C::record(&self.metadata, &self.body)
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

    use crate::api::labels;
    use crate::job::ObjectKind;
    use crate::plan::ChildKind;
    use crate::plan::observed::{Phase, PodRecord, ServiceRecord};

    use super::PartialChild;

    #[test]
    fn children_are_where_the_api_server_has_their_kind() {
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
    fn nothing_but_what_is_kept_can_make_a_pod_unreadable() {
        let pod = r#"{
            "kind": "Pod", "spec": {"containers": {"of": ["no", "kind"]}, "volumes": 7},
            "metadata": {"name": "a", "uid": "1", "managedFields": "none", "creationTimestamp": {},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": null, "annotations": {"a": 7, "training.kubeflow.org/restart-attempt": "3"},
                "labels": {"l": {}, "training.kubeflow.org/operator-name": "any", "m": "n"}},
            "status": {"phase": "Running"}
        }"#;
        let seen = serde_json::from_str::<PartialChild<PodRecord>>(pod).unwrap();
        let operator = [(labels::OPERATOR_NAME.to_owned(), "any".to_owned())];
        assert_eq!(seen.metadata.labels, Some(operator.into()));
        let record = seen.record();
        let expected = PodRecord {
            name: "a".to_owned(),
            uid: "1".to_owned(),
            attempt: 3,
            deleting: true,
            phase: Phase::Running,
            ..PodRecord::default()
        };
        assert_eq!(record, expected);
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
            assert_eq!(seen.record(), PodRecord::default());
        }
    }
}
