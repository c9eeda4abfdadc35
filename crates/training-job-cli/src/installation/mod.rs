//! The expectations of `doctor` in a cluster.

mod cluster_state;

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube_manifest::Finding;
use serde_json::Value;
use training_job_program::program;

pub use cluster_state::{ClusterState, MissingPermission, name};

use training_job_review::help;

/// The installation of a program, and the traces of former operators of its kinds.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Installation {
    /// The permissions that the operator needs for a kind beyond [`rules`](training_job_program::rules).
    pub more_rules: fn(kind: &str) -> Vec<PolicyRule>,
    /// Returns the operator that a Deployment runs; `None` for other programs.
    pub operator_of: fn(deployment: &Value) -> Option<OperatorVariant>,
    /// The remedy for a missing or outdated definition of a kind.
    pub apply_definition: fn(kind: &str) -> String,
    /// The remedy for a definition of an older operator, which keeps unknown fields.
    pub take_over_definition: fn(kind: &str) -> String,
    /// The remedy for missing permissions of the user who runs `doctor`.
    pub apply_reader_role: fn() -> String,
    /// The remedy if no operator is installed.
    pub install: fn() -> String,
    /// Finds problems of jobs that former operators left behind.
    pub former_jobs: fn(&ClusterState) -> Vec<Finding>,
}

/// The operator that a Deployment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorVariant {
    /// This program.
    This,
    /// Another program, which can be restricted to other kinds. Contains its name with an article.
    Other(&'static str),
    /// Another program that runs the same jobs. Contains its name with an article.
    Competitor(&'static str),
}

impl Default for Installation {
    /// The installation that [`Install`](crate::Install) prints.
    fn default() -> Self {
        Self {
            more_rules: |_| Vec::new(),
            operator_of: |deployment| runs(deployment, &program().name).then_some(OperatorVariant::This),
            apply_definition: |kind| {
                help("apply it with: {program} crd --kind KIND | kubectl apply --server-side --force-conflicts -f -")
                    .replace("KIND", kind)
            },
            take_over_definition: |kind| {
                help(
                    "add preserveUnknownFields: false to the spec of the output of {program} crd --kind KIND, and apply it \
                     with kubectl apply --server-side --force-conflicts",
                )
                .replace("KIND", kind)
            },
            apply_reader_role: || "run doctor as a user with these permissions".to_owned(),
            install: || help("apply the output of {program} manifests"),
            former_jobs: |_| Vec::new(),
        }
    }
}

/// Returns true if the service account or an image of a Deployment contains a program's name.
pub fn runs(deployment: &Value, name: &str) -> bool {
    let pod = &deployment["spec"]["template"]["spec"];
    let mut containers = pod["containers"].as_array().into_iter().flatten();
    pod["serviceAccountName"] == name
        || containers.any(|c| c["image"].as_str().is_some_and(|image| image.contains(name)))
}
