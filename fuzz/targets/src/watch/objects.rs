//! Pods and services with only the fields that the model reads. Other fields must not have an effect.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{self as core, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use training_job::api::labels;
use training_job::plan::observed::{PodRecord, ServiceRecord};

/// An object with a status.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    try_from = "RawObject<S>",
    bound(deserialize = "S: Status + Deserialize<'de>")
)]
pub(super) struct Object<S> {
    pub(super) metadata: ObjectMeta,
    pub(super) status: Option<S>,
}

pub(super) type Pod = Object<PodStatus>;
pub(super) type Service = Object<IgnoredAny>;

pub(super) trait Status {
    /// The kind of the objects with this status.
    const KIND: &str;
}

impl Status for PodStatus {
    const KIND: &str = "Pod";
}

impl Status for IgnoredAny {
    const KIND: &str = "Service";
}

#[derive(Deserialize)]
struct RawObject<S> {
    kind: Option<String>,
    metadata: Option<Meta>,
    status: Option<S>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    owner_references: Option<Vec<OwnerReference>>,
    labels: Option<Pairs>,
    annotations: Option<Pairs>,
}

/// The members of an object in order, including duplicate names.
struct Pairs(Vec<(String, Value)>);

impl Pairs {
    /// Returns the members of this name. Each of them must be a string. Other members may have any type.
    fn strings_named(self, name: &str) -> Result<BTreeMap<String, String>, String> {
        let named = self.0.into_iter().filter(|(key, _)| key == name);
        let read = |(key, value)| match value {
            Value::String(text) => Ok((key, text)),
            other => Err(format!("{key} is {other}")),
        };
        named.map(read).collect()
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

impl<S: Status> TryFrom<RawObject<S>> for Object<S> {
    type Error = String;

    fn try_from(raw: RawObject<S>) -> Result<Self, String> {
        if let Some(kind) = raw.kind.filter(|kind| kind != S::KIND) {
            return Err(kind);
        }
        let meta = raw.metadata.unwrap_or_default();
        let strings = |pairs: Option<Pairs>, name| pairs.map(|pairs| pairs.strings_named(name)).transpose();
        let metadata = ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            deletion_timestamp: meta.deletion_timestamp,
            owner_references: meta.owner_references,
            labels: strings(meta.labels, labels::OPERATOR_NAME)?,
            annotations: strings(meta.annotations, labels::RESTART_ATTEMPT)?,
            ..ObjectMeta::default()
        };
        Ok(Self {
            metadata,
            status: raw.status,
        })
    }
}

impl Pod {
    pub(super) fn record(&self) -> PodRecord {
        PodRecord::from(&core::Pod {
            metadata: self.metadata.clone(),
            status: self.status.clone(),
            ..core::Pod::default()
        })
    }
}

impl Service {
    pub(super) fn record(&self) -> ServiceRecord {
        ServiceRecord::from(&core::Service {
            metadata: self.metadata.clone(),
            ..core::Service::default()
        })
    }
}
