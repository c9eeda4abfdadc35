//! Pods and services as far as they are decoded.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::api::labels;

use super::child::Child;

/// A child without its spec and its managed fields: they are most of its bytes, cost time to decode, and a mistake in
/// them must not hide the child.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "")]
pub(crate) struct PartialChild<C: Child> {
    #[serde(default, rename = "kind", deserialize_with = "check::<C, _>")]
    _kind: (),
    #[serde(default, deserialize_with = "read")]
    pub(crate) metadata: ObjectMeta,
    pub(crate) status: Option<C::Status>,
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

/// Refuses an object of another kind, such as a Status in the place of a pod. Objects in a list name no kind.
fn check<'de, C: Child, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let wanted = C::Object::kind(&());
    match Option::<Cow<'_, str>>::deserialize(deserializer)? {
        Some(kind) if kind != wanted => Err(D::Error::custom(format!("it is a {kind}, not a {wanted}"))),
        _ => Ok(()),
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
        C::record(&self.metadata, self.status.as_ref())
    }
}

impl<C: Child> Resource for PartialChild<C> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        C::Object::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        C::Object::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        C::Object::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        C::Object::plural(&())
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
    use kube::Resource;

    use crate::api::labels;
    use crate::plan::observed::{Phase, PodRecord, ServiceRecord};

    use super::PartialChild;

    #[test]
    fn what_is_seen_of_an_object_is_where_the_object_is() {
        let pod = (
            PartialChild::<PodRecord>::kind(&()),
            PartialChild::<PodRecord>::url_path(&(), Some("ns")),
        );
        assert_eq!(pod, ("Pod".into(), "/api/v1/namespaces/ns/pods".to_owned()));
        let service = (
            PartialChild::<ServiceRecord>::kind(&()),
            PartialChild::<ServiceRecord>::url_path(&(), None),
        );
        assert_eq!(service, ("Service".into(), "/api/v1/services".to_owned()));
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
