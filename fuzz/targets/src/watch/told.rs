//! Pods and services as the model reads them: what else is in them must not matter.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{self as core, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;
use training_job::observed::{PodRecord, ServiceRecord};

/// An object with a status.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Read<S>", bound(deserialize = "S: Status + Deserialize<'de>"))]
pub(super) struct Told<S> {
    pub(super) metadata: ObjectMeta,
    pub(super) status: Option<S>,
}

pub(super) type Pod = Told<PodStatus>;
pub(super) type Service = Told<IgnoredAny>;

pub(super) trait Status {
    /// The kind of objects that have it.
    const KIND: &str;
}

impl Status for PodStatus {
    const KIND: &str = "Pod";
}

impl Status for IgnoredAny {
    const KIND: &str = "Service";
}

#[derive(Deserialize)]
struct Read<S> {
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
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

impl<S: Status> TryFrom<Read<S>> for Told<S> {
    type Error = String;

    fn try_from(read: Read<S>) -> Result<Self, String> {
        if let Some(kind) = read.kind.filter(|kind| kind != S::KIND) {
            return Err(kind);
        }
        let meta = read.metadata.unwrap_or_default();
        let metadata = ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            deletion_timestamp: meta.deletion_timestamp,
            owner_references: meta.owner_references,
            labels: meta.labels,
            annotations: meta.annotations,
            ..ObjectMeta::default()
        };
        Ok(Self {
            metadata,
            status: read.status,
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
