//! What is the same for all jobs of a kind: its names, numbers and roles.

use crate::api::RestartPolicy;

/// Names and numbers of a kind of training job.
#[derive(Clone, Debug)]
pub struct Framework {
    /// The framework in metrics, such as `tensorflow`.
    pub name: &'static str,
    /// The controller: the value of label `training.kubeflow.org/operator-name` and the source of events.
    pub controller: &'static str,
    /// The container that every replica must have, and whose ports the replica's service exposes.
    pub container: &'static str,
    /// The name of the port that is added to that container if it has none of this name.
    pub port_name: &'static str,
    /// Its number.
    pub port: i32,
    /// The restart policy of a replica spec that has none.
    pub restart_policy: RestartPolicy,
    /// The field below `spec` that holds the replica specs, for messages.
    pub specs_field: &'static str,
    /// The roles in the order in which their pods are made.
    pub roles: &'static [RoleKind],
}

/// A role that replicas of a kind of job may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleKind {
    /// Its name, as in the replica specs.
    pub name: &'static str,
    /// The most replicas it may have; no bound if unset but [`MAX_REPLICAS`](crate::api::MAX_REPLICAS).
    pub max: Option<u32>,
}

impl RoleKind {
    /// A role with any number of replicas.
    pub const fn new(name: &'static str) -> Self {
        Self { name, max: None }
    }

    /// A role with at most one replica.
    pub const fn single(name: &'static str) -> Self {
        Self { name, max: Some(1) }
    }
}
