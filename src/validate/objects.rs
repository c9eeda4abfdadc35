//! Checks the objects that jobs have in addition to pods and services.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube_schema::{Schema, names};

use super::schema;
use crate::api::schema::built_in;
use crate::job::{AnyJob, FieldErrors, JobObject, ObjectKind, ReplicaState, Replicas, Topology};

/// Checks the objects that the kind makes. An undeclared object would not be watched, and the API server drops unknown
/// fields. These are mistakes of the kind's author, which the first job reveals.
pub(super) fn check(job: &dyn AnyJob, topology: &Topology<'_>, errors: &mut FieldErrors) {
    let replicas = Replicas::new(topology, |_, _| ReplicaState::Absent);
    let mut known = BTreeSet::new();
    for object in job.objects(topology, &replicas) {
        let title = format!("{} {:?}", object.kind.kind, object.name());
        if !job.framework().declares(object.kind, |_| true) {
            errors.push(
                "spec",
                format!(
                    "the job's {title} is of a kind that {} does not declare",
                    job.kind()
                ),
                "this is a mistake in the operator: declare the kind with Framework::objects",
            );
        } else if object.name().is_empty() || !known.insert((object.kind, object.name().to_owned())) {
            errors.push(
                "spec",
                format!("the job's {title} has no unique name"),
                "this is a mistake in the operator: give each object its own name",
            );
        } else if is_of_a_replica(topology, &object) {
            errors.push(
                "spec",
                format!("the job's {title} has the name of a replica"),
                "rename the job",
            );
        } else if object.original().is_some() && !is_created_once(job, &object) {
            errors.push(
                "spec",
                format!("the job's {title} must not be a copy"),
                "this is a mistake in the operator: declare its kind with ObjectDefinition::created_once",
            );
        } else if let Some(name) = object.original().filter(|name| names::subdomain(name).is_some()) {
            errors.push(
                "spec",
                format!("the job's {title} is a copy of {name:?}, which no object can be named"),
                "correct the field with the name",
            );
        } else if object.random_bytes() > 0 && !may_be_random(job, &object) {
            errors.push(
                "spec",
                format!("the job's {title} must not have random bytes"),
                format!(
                    "this is a mistake in the operator: draw at most {} of them, for a Secret that is declared with \
                     ObjectDefinition::created_once",
                    JobObject::MAX_RANDOM_BYTES
                ),
            );
        } else if let Some(schema) = schema_of(object.kind) {
            let value = serde_json::to_value(&object).unwrap_or_default();
            for error in schema::check(schema, &value, &mut FieldErrors::default()) {
                let remedy = Some(error.remedy).filter(|remedy| !remedy.is_empty());
                let remedy = remedy.unwrap_or_else(|| "correct the hook objects".to_owned());
                errors.push(
                    "spec",
                    format!("the job's {title} is invalid: {}: {}", error.path, error.problem),
                    format!("this is a mistake in the operator: {remedy}"),
                );
            }
        }
    }
    check_mounts(job, topology, &known, errors);
}

/// Adds an error for each object that pods mount, and that the hook `objects` does not return, or that cannot exist. Its
/// pods would never start.
fn check_mounts(
    job: &dyn AnyJob,
    topology: &Topology<'_>,
    known: &BTreeSet<(ObjectKind, String)>,
    errors: &mut FieldErrors,
) {
    for definition in job.framework().objects {
        let Some(mount) = definition.mount else { continue };
        let name = mount.object_name(topology.job);
        let mut roles = topology.roles.iter().filter(|role| role.replicas > 0);
        if roles.any(|role| mount.is_in(role.class())) && !known.contains(&(definition.kind, name.clone())) {
            errors.push(
                "spec",
                format!("pods of the job mount {} {name:?}, which does not exist", definition.kind.kind),
                "this is a mistake in the operator: return the object from the hook objects, or mount another one",
            );
        }
    }
    for role in topology.roles.iter().filter(|role| role.replicas > 0) {
        let mounts = job.mounts(topology, role).into_iter();
        for mount in mounts.filter(|mount| names::subdomain(&mount.name).is_some()) {
            let (kind, name) = (mount.kind.kind, mount.name);
            errors.push(
                "spec",
                format!(
                    "pods of {} mount {kind} {name:?}, which no object can be named",
                    role.name()
                ),
                "correct the field with the name",
            );
        }
    }
}

/// Returns true if an object may have random bytes: a Secret that is never changed.
fn may_be_random(job: &dyn AnyJob, object: &JobObject) -> bool {
    let is_secret = object.kind == ObjectKind::of::<Secret>();
    is_secret && object.random_bytes() <= JobObject::MAX_RANDOM_BYTES && is_created_once(job, object)
}

fn is_created_once(job: &dyn AnyJob, object: &JobObject) -> bool {
    job.framework().declares(object.kind, |d| d.created_once)
}

/// Returns true if an object has the kind and name of a replica's pod or service.
fn is_of_a_replica(topology: &Topology<'_>, object: &JobObject) -> bool {
    if object.kind == ObjectKind::of::<Pod>() {
        return topology.has_replica_named(object.name());
    }
    object.kind == ObjectKind::of::<Service>() && topology.has_service_named(object.name())
}

/// Returns the schema of a kind of object that jobs often have. The API server checks the objects of other kinds.
fn schema_of(kind: ObjectKind) -> Option<&'static Schema> {
    macro_rules! any_of {
        ($($type:ty),*) => {
            $(if kind == ObjectKind::of::<$type>() {
                static SCHEMA: LazyLock<Schema> = LazyLock::new(built_in::<$type>);
                return Some(&SCHEMA);
            })*
        };
    }
    any_of!(
        ConfigMap,
        Secret,
        Service,
        ServiceAccount,
        Pod,
        PersistentVolumeClaim,
        Role,
        RoleBinding,
        HorizontalPodAutoscaler,
        NetworkPolicy,
        PodDisruptionBudget
    );
    None
}
