//! A valid job → the pods, services and other objects that it gets. Pure.
//!
//! The same functions serve the operator, which calls them for the replicas that are missing, and
//! `render`, which calls them for all.

pub(crate) mod accelerators;
pub(crate) mod gang;
mod pod;
mod requests;
mod service;
pub mod text;
mod warnings;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde_json::Value;

use gang::Members;
pub use pod::pod;
use service::common;
pub use service::service;
pub use warnings::warnings;

use crate::api::labels;
use crate::job::{
    JobObject, Replica, ReplicaNames, ReplicaState, Replicas, Role, SharedEnvironment, TrainingJob,
};
use crate::validate::ValidJob;

/// The UID of a job that no API server has seen, for the owner references in what is rendered.
pub const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// What a job gets at its start, in the order in which it is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rendered {
    /// What it has beside services and pods.
    pub objects: Vec<JobObject>,
    /// The services of all replicas, or the one that they share.
    pub services: Vec<Service>,
    /// Their pods.
    pub pods: Vec<Pod>,
}

impl Rendered {
    /// All of it as JSON.
    ///
    /// # Errors
    /// An object is no JSON.
    pub fn values(&self) -> serde_json::Result<Vec<Value>> {
        let objects = self.objects.iter().map(serde_json::to_value);
        let services = self.services.iter().map(serde_json::to_value);
        let pods = self.pods.iter().map(serde_json::to_value);
        objects.chain(services).chain(pods).collect()
    }
}

/// Everything that a job gets at its start.
pub fn all<J: TrainingJob>(job: &ValidJob<'_, J>) -> Rendered {
    let nobody_yet = Replicas::new(&job.topology, |_, _| ReplicaState::Absent);
    let mut objects = objects(job, &nobody_yet);
    if let Some(scheduler) = &job.topology.settings.gang_scheduler {
        let members = Members::all(job, scheduler);
        objects.insert(0, gang::pod_group(job, scheduler, &members, 0, None));
    }
    Rendered {
        objects,
        services: services(job, |_| true),
        pods: job.topology.all().map(|replica| pod(job, &replica, 0)).collect(),
    }
}

/// The services that a job has, of those whose names are wanted.
pub(crate) fn services<J: TrainingJob>(job: &ValidJob<'_, J>, wanted: impl Fn(&str) -> bool) -> Vec<Service> {
    if let Some(name) = &job.topology.common_service {
        return wanted(name).then(|| common(job, name)).into_iter().collect();
    }
    let have_one = job
        .topology
        .all()
        .filter(|replica| replica.role.definition.has_service);
    let replicas = have_one.filter(|replica| wanted(&replica.host()));
    replicas.map(|replica| service(job, &replica)).collect()
}

/// What a job has beside services and pods when its replicas are in these states.
pub fn objects<J: TrainingJob>(job: &ValidJob<'_, J>, replicas: &Replicas<'_>) -> Vec<JobObject> {
    let mut objects = job.job.objects(&job.topology, replicas);
    objects.extend(job.shared.as_ref().map(SharedEnvironment::object));
    objects.iter_mut().for_each(|object| belong_to(job, object));
    objects
}

/// Gives an object the job's namespace, the job as its owner, and the labels by which it is watched.
fn belong_to<J: TrainingJob>(job: &ValidJob<'_, J>, object: &mut JobObject) {
    let meta = &mut object.metadata;
    meta.namespace = Some(job.topology.namespace.to_owned());
    meta.owner_references = Some(vec![owner(job)]);
    meta.labels.get_or_insert_default().extend(job_labels(job));
}

/// The labels of everything that belongs to a job.
fn job_labels<J: TrainingJob>(job: &ValidJob<'_, J>) -> [(String, String); 2] {
    [
        (
            labels::OPERATOR_NAME.to_owned(),
            J::FRAMEWORK.controller.to_owned(),
        ),
        (labels::JOB_NAME.to_owned(), job.topology.job.to_owned()),
    ]
}

/// A label selector of a role's pods, as text: its keys in order of the alphabet.
pub(crate) fn selector<J: TrainingJob>(job: &ValidJob<'_, J>, role: &Role<'_>) -> String {
    let of_role = (labels::REPLICA_TYPE.to_owned(), role.slug.clone());
    let all: BTreeMap<_, _> = job_labels(job).into_iter().chain([of_role]).collect();
    let terms = all.iter().map(|(key, value)| format!("{key}={value}"));
    terms.collect::<Vec<_>>().join(",")
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

/// The labels that a replica's pod and service carry.
fn replica_labels<J: TrainingJob>(job: &ValidJob<'_, J>, replica: &Replica<'_>) -> BTreeMap<String, String> {
    let mut all = job.job.labels(&job.topology, replica);
    all.extend(own_labels(job, replica));
    all
}

/// Those of them that every kind has, by which the service finds the pod.
fn own_labels<J: TrainingJob>(job: &ValidJob<'_, J>, replica: &Replica<'_>) -> BTreeMap<String, String> {
    let role = (labels::REPLICA_TYPE.to_owned(), replica.role.slug.clone());
    let index = match &replica.role.names {
        ReplicaNames::Indexed(_) => Some((labels::REPLICA_INDEX.to_owned(), replica.index.to_string())),
        ReplicaNames::Bare(_) => None,
    };
    job_labels(job).into_iter().chain([role]).chain(index).collect()
}
