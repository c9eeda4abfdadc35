//! The kind TfJob as the library sees it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::EnvVar;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::Value;
use training_job::api::schema::tidy_definition;
use training_job::api::{JobStatus, RunPolicy};
use training_job::{
    Check, FieldErrors, Framework, JobObject, ObjectDefinition, Outcome, Replica, ReplicaNames, Replicas,
    Role, RoleDefinition, RoleSpecs, Rule, Scope, Topology, TrainingJob,
};

use super::spec::{SERVICE_TYPES, TfJob, TfJobStatus};
use super::{environment, template, tensorboard};
use crate::{replica, runtime_id};

const MASTER: &str = "MASTER";
const PS: &str = "PS";
const WORKER: &str = "WORKER";

const PORT: &str = "tf-port";

/// The text of validation for a template without containers.
const NO_CONTAINER: &str = "must have a container; add one named \"tensorflow\"";

impl TfJob {
    fn runtime_id(&self) -> String {
        runtime_id::of(self.spec.own_runtime_id(), self.metadata.uid.as_deref())
    }
}

impl TrainingJob for TfJob {
    const FRAMEWORK: Framework = Framework::new("mlkube-tensorflow", "mlkube-tfjob-controller")
        .main_container("tensorflow")
        .port(PORT, 2222)
        .env_main_container_only()
        .roles_in_list(
            "replicaSpecs",
            "tfReplicaType",
            &[
                RoleDefinition::new(MASTER).exactly(1),
                RoleDefinition::new(PS),
                RoleDefinition::new(WORKER),
            ],
        )
        .objects(&[
            ObjectDefinition::new(tensorboard::SERVICE),
            ObjectDefinition::new(tensorboard::POD),
        ])
        .fills_in_templates()
        .names_replicas();

    fn replica_specs(&self) -> RoleSpecs<'_> {
        let entries = self.spec.entries().map(|entry| {
            let template = match template::is_default_server(entry) {
                true => Some(template::default_server(&self.spec)),
                false => entry.template.clone(),
            };
            let port = (PORT, entry.port());
            let spec = replica::spec(entry.replicas, template.as_ref(), "tensorflow", port);
            (Cow::Borrowed(entry.role()), Cow::Owned(spec))
        });
        RoleSpecs::list(entries)
    }

    fn run_policy(&self) -> RunPolicy {
        RunPolicy::default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref().map(TfJobStatus::job)
    }

    fn encode_status(&self, status: &JobStatus, _: Option<&Topology<'_>>) -> serde_json::Result<Value> {
        let deleting = self.metadata.deletion_timestamp.is_some();
        serde_json::to_value(TfJobStatus::of(status, deleting))
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::variables(topology, replica)
    }

    fn validate(&self, _: &Topology<'_>, errors: &mut FieldErrors) {
        let Some(board) = &self.spec.tensorboard else {
            return;
        };
        let type_ = board.service_type();
        if !SERVICE_TYPES.contains(&type_) {
            errors.unknown_word("spec.tensorboard.serviceType", type_, &SERVICE_TYPES);
        }
    }

    fn checks() -> Vec<Check<Self>> {
        let is_ps = |field: &str| format!("has(k.{field}) && k.{field}.lowerAscii() == \"ps\"");
        let is_ps = [is_ps("tfReplicaType"), is_ps("tf_replica_type")].join(" || ");
        let templates = format!("self.replicaSpecs.all(k, has(k.template) || {is_ps})");
        let logs = "!has(self.tensorboard) || self.tensorboard.logDir != \"\"";
        let mut checks = vec![
            Rule::new(templates, NO_CONTAINER)
                .at(Self::FRAMEWORK.roles_field)
                .into(),
            Check::field(
                "tensorboard.logDir",
                "must not be empty",
                "set the directory of the logs",
                logs,
                |job: &Self, _| {
                    let board = job.spec.tensorboard.as_ref();
                    board.is_none_or(|board| !board.log_dir.is_empty())
                },
            ),
        ];
        checks.extend(runtime_id::checks("RuntimeId", |job: &Self, _| {
            runtime_id::fits(job.spec.runtime_id.as_deref())
        }));
        checks.extend(runtime_id::checks("runtimeid", |job: &Self, _| {
            runtime_id::fits(job.spec.runtime_id_lower.as_deref())
        }));
        checks
    }

    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        replicas.decided_by(&[MASTER])
    }

    /// With parameter servers a restarted replica rejoins the job. Without them all replicas train in a collective,
    /// which accepts no restarted member.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        match topology.role(PS) {
            Some(_) => Scope::Replica,
            None => topology.collective_scope(),
        }
    }

    fn is_retryable(&self, _: &Role<'_>, exit_code: i32, reason: &str) -> bool {
        replica::is_retryable(exit_code, reason)
    }

    fn replica_names(&self, role: &Role<'_>) -> ReplicaNames {
        replica::names(self.metadata.name.as_deref(), role.definition, &self.runtime_id())
    }

    fn labels(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> BTreeMap<String, String> {
        let id = self.runtime_id();
        replica::labels("mlkube.io", "tf_job_name", topology.job, &id, replica)
    }

    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == MASTER
    }

    fn objects(&self, topology: &Topology<'_>, _: &Replicas<'_>) -> Vec<JobObject> {
        let (id, image) = (self.runtime_id(), template::image(&self.spec));
        let board = self.spec.tensorboard.iter();
        board
            .flat_map(|board| tensorboard::objects(board, topology.job, &id, image))
            .collect()
    }

    fn definition() -> CustomResourceDefinition {
        tidy_definition(Self::crd(), &[])
    }
}
