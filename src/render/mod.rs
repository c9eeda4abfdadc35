//! A valid job → the pods and services that it gets. Pure.
//!
//! The same functions serve the operator, which calls them for the replicas that are missing, and
//! `render`, which calls them for all.

mod pod;
mod service;
pub mod text;
mod warnings;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

pub use pod::pod;
pub use service::service;
pub use warnings::warnings;

use crate::api::labels;
use crate::job::Replica;
use crate::job::TrainingJob;
use crate::validate::ValidJob;

/// Everything that a job gets at its start: the services of all replicas, then their pods, in the
/// order in which they are made.
pub fn all<J: TrainingJob>(job: &ValidJob<'_, J>) -> (Vec<Service>, Vec<Pod>) {
    let services = job.topology.all().map(|replica| service(job, &replica)).collect();
    let pods = job.topology.all().map(|replica| pod(job, &replica, 0)).collect();
    (services, pods)
}

/// The job as the controlling owner of a child.
fn owner<J: TrainingJob>(job: &ValidJob<'_, J>) -> OwnerReference {
    OwnerReference {
        api_version: J::api_version(&()).into_owned(),
        kind: J::kind(&()).into_owned(),
        name: job.topology.job.to_owned(),
        uid: job.topology.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The labels that a replica's pod and service carry, and by which the service finds the pod.
fn replica_labels<J: TrainingJob>(job: &ValidJob<'_, J>, replica: &Replica<'_>) -> BTreeMap<String, String> {
    let own = [
        (labels::OPERATOR_NAME, J::FRAMEWORK.controller.to_owned()),
        (labels::JOB_NAME, job.topology.job.to_owned()),
        (labels::REPLICA_TYPE, replica.role.slug.clone()),
        (labels::REPLICA_INDEX, replica.index.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let mut all = job.job.labels(&job.topology, replica);
    all.extend(own);
    all
}
