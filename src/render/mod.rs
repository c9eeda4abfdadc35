//! Renders the pods, services and other objects of a valid job. Pure.
//!
//! The operator calls these functions for missing replicas, and `render` calls them for all replicas.

pub(crate) mod accelerators;
mod confine;
pub(crate) mod gang;
mod mounts;
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
pub(crate) use gang::gang_label;
pub use pod::pod;
use service::common;
pub(crate) use service::headless;
pub use service::service;
pub use warnings::warnings;

use crate::api::labels;
use crate::job::{
    AnyJob, FieldErrors, JobObject, Kind, Replica, ReplicaNames, ReplicaState, Replicas, Role,
    SharedEnvironment,
};
use crate::validate::ValidJob;

/// The UID of a job that is not stored in an API server, for the owner references in rendered objects.
pub const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Returns an object as a job of `kind`. A job without a UID gets [`NO_UID`].
///
/// # Errors
/// There is one error, with an empty path, if the object does not have a job's shape.
pub fn decode(kind: &Kind, object: &Value) -> Result<Box<dyn AnyJob>, FieldErrors> {
    let mut job = kind.decode(object)?;
    job.meta_mut().uid.get_or_insert_with(|| NO_UID.to_owned());
    Ok(job)
}

/// The objects that a job gets at its start, in the order in which they are created.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rendered {
    /// The objects other than services and pods.
    pub objects: Vec<JobObject>,
    /// The services of all replicas, or the one service that they share.
    pub services: Vec<Service>,
    /// The pods of all replicas.
    pub pods: Vec<Pod>,
}

impl Rendered {
    /// Returns all objects as JSON.
    ///
    /// # Errors
    /// An object cannot be written as JSON.
    pub fn values(&self) -> serde_json::Result<Vec<Value>> {
        let objects = self.objects.iter().map(serde_json::to_value);
        let services = self.services.iter().map(serde_json::to_value);
        let pods = self.pods.iter().map(serde_json::to_value);
        objects.chain(services).chain(pods).collect()
    }
}

/// Returns everything that a job gets at its start, when its pods exist and none runs yet. The group of a gang whose roles
/// wait for roles outside of it is the one that it has when these run.
pub fn all(job: &ValidJob<'_>) -> Rendered {
    let none_runs = Replicas::new(&job.topology, |_, _| ReplicaState::Pending);
    let mut objects = objects(job, &none_runs);
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

/// Returns the services of a job whose names are wanted.
pub(crate) fn services(job: &ValidJob<'_>, wanted: impl Fn(&str) -> bool) -> Vec<Service> {
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

/// Returns the objects of a job other than services and pods when its replicas are in these states.
pub fn objects(job: &ValidJob<'_>, replicas: &Replicas<'_>) -> Vec<JobObject> {
    let mut objects = job.job.objects(&job.topology, replicas);
    objects.extend(job.shared.as_ref().map(SharedEnvironment::object));
    objects
        .iter_mut()
        .for_each(|object| set_owner_and_labels(job, object));
    objects
}

/// Sets the job's namespace, the job as the owner, and the labels by which the object is watched.
fn set_owner_and_labels(job: &ValidJob<'_>, object: &mut JobObject) {
    let meta = &mut object.metadata;
    meta.namespace = Some(job.topology.namespace.to_owned());
    meta.owner_references = Some(vec![owner(job)]);
    meta.labels.get_or_insert_default().extend(job_labels(job));
}

/// Returns the labels of everything that belongs to a job.
pub(crate) fn job_labels(job: &ValidJob<'_>) -> [(String, String); 2] {
    [
        (
            labels::OPERATOR_NAME.to_owned(),
            job.job.framework().controller.to_owned(),
        ),
        (job.keys.job_name.clone(), job.topology.job.to_owned()),
    ]
}

/// Returns the label selector of a role's pods as text, its keys in alphabetical order.
pub(crate) fn selector(job: &ValidJob<'_>, role: &Role<'_>) -> String {
    let of_role = (job.keys.replica_type.clone(), role.slug.clone());
    let all: BTreeMap<_, _> = job_labels(job).into_iter().chain([of_role]).collect();
    let terms = all.iter().map(|(key, value)| format!("{key}={value}"));
    terms.collect::<Vec<_>>().join(",")
}

/// Returns the job as the controlling owner of a child.
fn owner(job: &ValidJob<'_>) -> OwnerReference {
    OwnerReference {
        api_version: job.job.api_version().into_owned(),
        kind: job.job.kind().into_owned(),
        name: job.topology.job.to_owned(),
        uid: job.topology.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Returns the labels of a replica's pod and service.
fn replica_labels(job: &ValidJob<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
    let mut all = job.job.labels(&job.topology, replica);
    all.extend(own_labels(job, replica));
    all
}

/// Returns the labels of a replica that do not depend on the kind of job. The service selects the pod by them.
fn own_labels(job: &ValidJob<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
    let index = index_label(job, replica);
    role_labels(job, replica.role).into_iter().chain(index).collect()
}

/// Returns the labels that all pods of a role have from the operator.
pub(crate) fn role_labels(job: &ValidJob<'_>, role: &Role<'_>) -> Vec<(String, String)> {
    let of_role = (job.keys.replica_type.clone(), role.slug.clone());
    job_labels(job).into_iter().chain([of_role]).collect()
}

/// Returns the label with a replica's index, if its role has indexes.
pub(crate) fn index_label(job: &ValidJob<'_>, replica: &Replica<'_>) -> Option<(String, String)> {
    match &replica.role.names {
        ReplicaNames::Indexed(_) => {
            let index = job.job.first_index(replica.role).saturating_add(replica.index);
            Some((job.keys.replica_index.clone(), index.to_string()))
        }
        ReplicaNames::Single(_) => None,
    }
}
