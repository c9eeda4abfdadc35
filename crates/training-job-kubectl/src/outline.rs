//! The parts of a job that views show, independent of the kind's Rust type.

use serde_json::Value;
use training_job::api::JobStatus;
use training_job::job::ReplicaNames;
use training_job::plan::restarts_for_sizes;
use training_job::render::decode;
use training_job::validate::{Policy, validate_any};
use training_job::{FieldErrors, Kind, Settings};

/// The roles and the run policy of a valid job, defaults applied.
#[derive(Clone, Debug)]
pub struct Outline {
    /// In the order of the framework. Roles with 0 replicas are included.
    pub roles: Vec<RoleOutline>,
    pub(crate) policy: Policy,
    /// The path of the field that suspends the job, such as `spec.runPolicy.suspend`.
    pub(crate) suspend_field: String,
    /// The changed numbers of replicas for which the operator will restart the whole job, if any.
    pub(crate) resized: Option<String>,
}

impl Outline {
    /// Returns a note about the restart of the whole job for other numbers of replicas, if it is due.
    pub fn resize_note(&self) -> Option<String> {
        let change = self.resized.as_ref()?;
        Some(format!(
            "all replicas restart, because the environment of each depends on the number of replicas ({change}); the \
             restart counts against no limit"
        ))
    }
}

/// A role of a valid job.
#[derive(Clone, Debug)]
pub struct RoleOutline {
    pub name: String,
    /// The name in lower case, as in labels and names.
    pub slug: String,
    /// The path of the number of replicas, such as `spec.mxReplicaSpecs.Worker.replicas`.
    pub(crate) replicas_path: String,
    pub replicas: u32,
    pub(crate) names: ReplicaNames,
    pub(crate) restart_policy: String,
    /// The container whose end is the end of the replica.
    pub(crate) main_container: Option<String>,
}

impl RoleOutline {
    pub fn pod_name(&self, index: u32) -> String {
        match &self.names {
            ReplicaNames::Indexed(prefix) => format!("{prefix}-{index}"),
            ReplicaNames::Single(name) => name.clone(),
        }
    }
}

/// Returns the status and the outline of a stored job. The status is the default if the object cannot be decoded.
pub fn outline(kind: &Kind, object: &Value) -> (JobStatus, Result<Outline, FieldErrors>) {
    let job = match decode(kind, object) {
        Ok(job) => job,
        Err(errors) => return (JobStatus::default(), Err(errors)),
    };
    let status = job.status().cloned().unwrap_or_default();
    let outline = validate_any(kind, &*job, &Settings::default()).map(|valid| Outline {
        roles: valid
            .topology
            .roles
            .iter()
            .map(|role| RoleOutline {
                name: role.name().to_owned(),
                slug: role.slug.clone(),
                replicas_path: role.replicas_path(),
                replicas: role.replicas,
                names: role.names.clone(),
                restart_policy: role.restart_policy.as_str().to_owned(),
                main_container: role.main_container().map(|container| container.name.clone()),
            })
            .collect(),
        suspend_field: job.run_policy_field("suspend"),
        resized: restarts_for_sizes(&valid),
        policy: valid.policy,
    });
    (status, outline)
}
