//! The kind MxJob as the library sees it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;
use training_job::api::schema::tidy_definition;
use training_job::api::{JobStatus, RunPolicy, variable};
use training_job::{
    Check, FieldErrors, Framework, Outcome, Replica, ReplicaNames, Replicas, Role, RoleDefinition, RoleSpecs,
    Scope, Topology, TrainingJob,
};

use super::spec::{MODES, MxJob, MxJobStatus};
use crate::{replica, runtime_id};

const SCHEDULER: &str = "SCHEDULER";
const SERVER: &str = "SERVER";
const WORKER: &str = "WORKER";

const PORT: &str = "ps-root-port";

impl MxJob {
    fn is_dist(&self) -> bool {
        self.spec.job_mode == "dist"
    }

    fn runtime_id(&self) -> String {
        runtime_id::of(self.spec.runtime_id.as_deref(), self.metadata.uid.as_deref())
    }
}

impl TrainingJob for MxJob {
    const FRAMEWORK: Framework = Framework::new("mlkube-mxnet", "mlkube-mxjob-controller")
        .main_container("mxnet")
        .port(PORT, 9091)
        .env_main_container_only()
        .roles_in_list(
            "replicaSpecs",
            "mxReplicaType",
            &[
                RoleDefinition::new(SCHEDULER).at_most(1),
                RoleDefinition::new(SERVER),
                RoleDefinition::new(WORKER),
            ],
        )
        .names_replicas();

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let entries = self.spec.replica_specs.iter().map(|entry| {
            let role = entry.mx_replica_type.as_deref().unwrap_or(WORKER);
            let port = (PORT, entry.ps_root_port);
            let spec = replica::spec(entry.replicas, entry.template.as_ref(), "mxnet", port);
            (Cow::Borrowed(role), Cow::Owned(spec))
        });
        RoleSpecs::list(entries)
    }

    fn run_policy(&self) -> RunPolicy {
        RunPolicy::default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref().map(MxJobStatus::job)
    }

    fn encode_status(&self, status: &JobStatus, _: Option<&Topology<'_>>) -> serde_json::Result<Value> {
        let deleting = self.metadata.deletion_timestamp.is_some();
        serde_json::to_value(MxJobStatus::of(status, deleting))
    }

    /// Returns the variables of MXNet's parameter server. `DMLC_USE_KUBERNETES` makes the scheduler listen at all
    /// addresses, because the name of its service does not resolve to an address of its own pod before it listens.
    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        if !self.is_dist() {
            return Vec::new();
        }
        let scheduler = topology.role(SCHEDULER);
        let host = scheduler.map(|s| s.host(0)).unwrap_or_default();
        vec![
            variable("DMLC_PS_ROOT_PORT", scheduler.map_or(0, |s| s.port).to_string()),
            variable("DMLC_PS_ROOT_URI", host),
            variable("DMLC_NUM_SERVER", topology.replicas(SERVER).to_string()),
            variable("DMLC_NUM_WORKER", topology.replicas(WORKER).to_string()),
            variable("DMLC_ROLE", replica.role.slug.clone()),
            variable("DMLC_USE_KUBERNETES", "1"),
        ]
    }

    fn checks() -> Vec<Check<Self>> {
        let needs = |role: &'static str| {
            let problem = format!("must have a {role}, because jobMode is dist");
            let remedy = format!("add one, or set jobMode to {}", MODES[0]);
            Check::at_least(role, 1, problem, remedy)
                .when(Self::is_dist, "has(self.jobMode) && self.jobMode == \"dist\"")
        };
        let is_worker = "(!has(k.mxReplicaType) || k.mxReplicaType.lowerAscii() == \"worker\")";
        let is_one = "(!has(k.replicas) || k.replicas == 1)";
        let is_local = "has(self.jobMode) && self.jobMode == \"local\"";
        let one_worker = format!("!({is_local}) || self.replicaSpecs.all(k, {is_worker} && {is_one})");
        let mut checks = vec![Check::field(
            Self::FRAMEWORK.roles_field,
            "must have one WORKER and no other replicas, because jobMode is local",
            "remove the others, or set jobMode to dist",
            one_worker,
            |job: &Self, topology| {
                let is_fine = |role: &Role<'_>| role.name() == WORKER && role.replicas == 1;
                job.spec.job_mode != "local" || topology.roles.iter().all(is_fine)
            },
        )];
        let id_fits = |job: &Self, _: &Topology<'_>| runtime_id::fits(job.spec.runtime_id.as_deref());
        checks.extend(runtime_id::checks("RuntimeId", id_fits));
        checks.extend([SCHEDULER, SERVER, WORKER].map(needs));
        checks
    }

    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        match self.spec.job_mode.as_str() {
            "dist" | "local" => {}
            other => errors.unknown_word("spec.jobMode", other, &MODES),
        }
    }

    /// The scheduler waits for all servers and workers.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        match self.is_dist() {
            true => replicas.decided_by(&[SCHEDULER]),
            false => replicas.decided_by(&[WORKER]),
        }
    }

    /// All replicas restart together, because a running cluster does not accept a single restarted replica: all
    /// replicas would hang without an error.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        topology.collective_scope()
    }

    fn is_retryable(&self, _: &Role<'_>, exit_code: i32, reason: &str) -> bool {
        replica::is_retryable(exit_code, reason)
    }

    fn replica_names(&self, role: &Role<'_>) -> ReplicaNames {
        replica::names(self.metadata.name.as_deref(), role.definition, &self.runtime_id())
    }

    fn labels(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
        let id = self.runtime_id();
        replica::labels("mxnet.mlkube.io", "mxnet_job_name", topology.job, &id, replica)
    }

    fn definition() -> CustomResourceDefinition {
        tidy_definition(Self::crd(), &["jobMode", "replicaSpecs"])
    }
}
