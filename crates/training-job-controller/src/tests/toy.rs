//! A kind of jobs for tests of the caches.

use std::cell::Cell;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodSpec;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::cache::stored_job::{RawJob, StoredJob};
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy};
use training_job::job::{
    FieldErrors, Framework, Kind, ObjectDefinition, ObjectKind, Replica, RoleDefinition, RoleSpecs, Topology,
    TrainingJob,
};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "ToyJob",
    namespaced,
    status = "JobStatus"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToySpec {
    #[serde(default)]
    specs: ReplicaSpecs,
    #[serde(default)]
    run_policy: RunPolicy,
}

/// A kind of object that the jobs need.
pub(crate) const CONFIG: ObjectKind = ObjectKind::new("", "v1", "ConfigMap", "configmaps");
/// A kind of object that the jobs can run without.
pub(crate) const QUEUE: ObjectKind = ObjectKind::new("example.com", "v1", "Queue", "queues");

impl TrainingJob for ToyJob {
    const FRAMEWORK: Framework = Framework::new("toy", "toyjob-controller")
        .port("toy-port", 1)
        .roles("specs", &[RoleDefinition::new("Worker")])
        .objects(&[
            ObjectDefinition::new(CONFIG),
            ObjectDefinition::new(QUEUE).optional(),
        ]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.specs)
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, _: &Topology<'_>, _: &Replica<'_>) -> Vec<k8s_openapi::api::core::v1::EnvVar> {
        Vec::new()
    }

    fn customize(&self, _: &Topology<'_>, _: &Replica<'_>, _: &mut PodSpec) {
        MADE.set(MADE.get() + 1);
    }

    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        ASKED.set(ASKED.get() + 1);
        let annotations = self.metadata.annotations.as_ref();
        if annotations.is_some_and(|annotations| annotations.contains_key("broken")) {
            errors.push("metadata.annotations.broken", "it is there", "take it away");
        }
    }
}

thread_local! {
    /// Number of validations of whole jobs in this thread.
    pub(crate) static ASKED: Cell<u32> = const { Cell::new(0) };
    /// Number of pods that this thread has rendered.
    pub(crate) static MADE: Cell<u32> = const { Cell::new(0) };
}

/// Returns an object as a watch delivers it.
pub(crate) fn raw(object: &Value) -> RawJob {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// Returns an object as it is cached.
pub(crate) fn stored(object: &Value) -> StoredJob {
    StoredJob::of(&Arc::new(Kind::of::<ToyJob>()), raw(object))
}

/// Returns the job `ns/job` with this UID and version, as a watch delivers it.
pub(crate) fn raw_job(uid: &str, version: u64) -> RawJob {
    raw(&json!({
        "apiVersion": "example.com/v1", "kind": "ToyJob", "spec": {},
        "metadata": {"name": "job", "namespace": "ns", "uid": uid, "resourceVersion": version.to_string()},
    }))
}

/// Returns the job `ns/job` with UID `a` and this number of workers.
pub(crate) fn with_workers(replicas: u32) -> Value {
    let template = json!({"spec": {"containers": [{"name": "toy", "image": "i"}]}});
    json!({
        "apiVersion": "example.com/v1", "kind": "ToyJob",
        "metadata": {"name": "job", "namespace": "ns", "uid": "a", "resourceVersion": "5"},
        "spec": {"specs": {"Worker": {"replicas": replicas, "template": template}}},
    })
}

/// Returns the job of [`raw_job`] as it is cached.
pub(crate) fn job(uid: &str, version: u64) -> StoredJob {
    StoredJob::of(&Arc::new(Kind::of::<ToyJob>()), raw_job(uid, version))
}
