//! A kind of job for the library's own tests, which belong to no framework.

use k8s_openapi::api::core::v1::EnvVar;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use training_job::api::{JobStatus, ReplicaSpecs, RunPolicy, variable};
use training_job::{
    Check, Framework, Outcome, Replica, Replicas, Role, RoleDefinition, RoleSpecs, Scope, Topology,
    TrainingJob,
};

/// A job of a scheduler that hands out work, of servers that wait for it, and of workers that do it.
///
/// The scheduler's end is the job's; without a scheduler all workers must succeed. Servers never end by themselves.
/// A job of several replicas restarts as a whole. All else is the trait's default. The annotation [`PANICS`] names the
/// hook that panics, `env` or `outcome`, [`RETRIES`] limits the restarts of the workers, and with [`STEPS`] the workers are the
/// step after the scheduler.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubeflow.org",
    version = "v1",
    kind = "ToyJob",
    plural = "toyjobs",
    namespaced,
    doc = "A job for tests.",
    status = "JobStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct ToyJobSpec {
    /// The replicas by role: Scheduler, Server, Worker.
    #[serde(default)]
    pub replica_specs: ReplicaSpecs,

    /// The run policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,
}

/// The annotation of a toy job with the name of the hook that panics.
pub const PANICS: &str = "toy/panics";

/// The annotation of a toy job whose replicas may come and go.
pub const ELASTIC: &str = "toy/elastic";

/// The annotation of a toy job with the number of restarts of its workers after which the next failure fails the job.
pub const RETRIES: &str = "toy/retries";

/// The annotation of a toy job whose workers start when the scheduler has succeeded. The workers' end is the job's then.
pub const STEPS: &str = "toy/steps";

impl ToyJob {
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn panics_in(&self, hook: &str) -> bool {
        self.annotation(PANICS) == Some(hook)
    }
}

impl TrainingJob for ToyJob {
    const FRAMEWORK: Framework = Framework::new("toy", "toyjob-controller")
        .port("toy-port", 4000)
        .roles(
            "replicaSpecs",
            &[
                RoleDefinition::new("Scheduler").at_most(1),
                RoleDefinition::new("Server"),
                RoleDefinition::new("Worker").when_succeeded(),
            ],
        );

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.replica_specs)
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.run_policy.clone().unwrap_or_default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    /// `TOY_CONFIG` names all replicas by role, and this one; `TOY_ROLE` is its role.
    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        assert!(!self.panics_in("env"), "no environment");
        let hosts = |role: &Role<'_>| role.all().map(|r| r.host()).collect::<Vec<_>>();
        let cluster: serde_json::Map<_, _> = topology
            .roles
            .iter()
            .map(|role| (role.slug.clone(), hosts(role).into()))
            .collect();
        let role = replica.role.slug.clone();
        let config = json!({"cluster": cluster, "task": {"type": role, "index": replica.index}});
        vec![
            variable("TOY_CONFIG", config.to_string()),
            variable("TOY_ROLE", role),
        ]
    }

    fn checks() -> Vec<Check<Self>> {
        let problem = "a job without a Worker would never end";
        vec![Check::any_of(&["Worker", "Scheduler"], problem, "add a Worker")]
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        assert!(!self.panics_in("outcome"), "no outcome");
        let has_scheduler = replicas.role("Scheduler").is_some() && self.annotation(STEPS).is_none();
        let deciding = if has_scheduler { "Scheduler" } else { "Worker" };
        replicas.decided_by(&[deciding])
    }

    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        if topology.total() > 1 {
            Scope::Job
        } else {
            Scope::Replica
        }
    }

    fn starts_after(&self, _: &Topology<'_>, role: &Role<'_>) -> &'static [&'static str] {
        match role.name() {
            "Worker" if self.annotation(STEPS).is_some() => &["Scheduler"],
            _ => &[],
        }
    }

    fn is_elastic(&self, _: &Topology<'_>, _: &Role<'_>) -> bool {
        self.annotation(ELASTIC).is_some()
    }

    fn retries(&self, role: &Role<'_>) -> Option<u32> {
        let limit = self.annotation(RETRIES).filter(|_| role.name() == "Worker");
        limit.and_then(|limit| limit.parse().ok())
    }
}
