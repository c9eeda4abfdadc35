//! The kind MXJob as the library sees it.

use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Resource, ResourceExt};
use serde_json::Value;
use training_job::api::{JobStatus, RunPolicy, SuccessPolicy, labels};
use training_job::{
    Check, FieldErrors, Framework, Milestone, Outcome, Replica, Replicas, Role, RoleDefinition, RoleSpecs,
    Scope, Topology, TrainingJob,
};

use crate::{Compatibility, JobMode, MXJob, definition, environment, warnings};

impl TrainingJob for MXJob {
    const FRAMEWORK: Framework = Framework::new("mxnet", "mxjob-controller")
        .port("mxjob-port", 9091)
        .stable_address()
        .roles(
            "mxReplicaSpecs",
            &[
                RoleDefinition::new("Scheduler").at_most(1),
                RoleDefinition::new("Server"),
                RoleDefinition::new("Worker"),
                RoleDefinition::new("TunerTracker").at_most(1),
                RoleDefinition::new("TunerServer"),
                RoleDefinition::new("Tuner"),
            ],
        )
        .annotated_fields(&["compatibility"]);

    fn replica_specs(&self) -> RoleSpecs<'_> {
        RoleSpecs::map(&self.spec.mx_replica_specs)
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.merged_run_policy()
    }

    fn run_policy_field(&self, field: &str) -> String {
        if self.spec.has_at_top(field) {
            format!("spec.{field}")
        } else {
            format!("spec.runPolicy.{field}")
        }
    }

    fn managed_by(&self) -> Option<&str> {
        self.spec.managed_by.as_deref()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref().map(|status| &status.job)
    }

    fn encode_status(&self, status: &JobStatus, _: Option<&Topology<'_>>) -> serde_json::Result<Value> {
        self.status_on_the_wire(status)
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::variables(&self.spec, topology, replica)
    }

    fn checks() -> Vec<Check<Self>> {
        [
            (
                JobMode::Train,
                r#"["", "MXTrain"]"#,
                is_training as fn(&Self) -> bool,
            ),
            (JobMode::Tune, r#"["MXTune"]"#, is_tuning),
        ]
        .map(|(mode, words, applies)| {
            let (word, usual) = (mode.word(), mode.deciding()[0]);
            let problem = format!("must have a {usual}, because an {word} job without one never ends");
            Check::any_of(mode.deciding(), problem, format!("add a {usual}"))
                .when(applies, format!("self.?jobMode.orValue(\"\") in {words}"))
        })
        .into()
    }

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        errors.check_word("spec.successPolicy", self.spec.success_policy.as_ref());
        if self.spec.mode().is_none() {
            errors.unknown_word("spec.jobMode", &self.spec.job_mode, &JobMode::WORDS);
        }
        let compatibility = self.spec.compatibility.as_str();
        if !compatibility.is_empty() && !Compatibility::WORDS.contains(&compatibility) {
            errors.unknown_word("spec.compatibility", compatibility, &Compatibility::WORDS);
        }
        let is_queued = labels::queue(self.meta()).is_some();
        if let (Some(mode), true) = (self.spec.mode(), is_queued) {
            let has_replicas = topology.roles.iter().filter(|role| role.replicas > 0);
            for role in has_replicas.filter(|role| !mode.roles().contains(&role.name())) {
                errors.push(
                    role.field.as_str(),
                    format!(
                        "must not be in a queued {} job, because Kueue does not count the pods of a {}",
                        mode.word(),
                        role.name()
                    ),
                    format!("remove it, or remove the label {}", labels::QUEUE_NAME),
                );
            }
        }
    }

    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        warnings::add(self, topology, warnings);
    }

    fn describe_compatibility(&self, version: &str) -> Option<String> {
        self.spec.describe_compatibility(version)
    }

    /// The scheduler decides a training, because it waits for all servers and workers. Without a scheduler, or with
    /// `successPolicy: AllWorkers`, the workers decide. The tuner decides a tuning job, because tracker and servers
    /// never end by themselves.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        if is_tuning(self) {
            return replicas.decided_by(&["Tuner"]);
        }
        let workers = replicas.decided_by(&["Worker"]);
        match (replicas.role("Scheduler"), &self.spec.success_policy) {
            (None, _) => workers,
            (Some(_), Some(SuccessPolicy::AllWorkers)) if replicas.role("Worker").is_some() => {
                let scheduler = replicas.decided_by(&["Scheduler"]);
                if workers != Outcome::Succeeded && scheduler != Outcome::Waiting {
                    Outcome::Running
                } else {
                    workers
                }
            }
            (Some(_), _) => replicas.decided_by(&["Scheduler"]),
        }
    }

    /// In a training all replicas restart together, because a running cluster does not accept a single restarted
    /// worker, server or scheduler: all replicas would hang without an error. A tuner and its servers can restart
    /// alone.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> Scope {
        match self.spec.mode() {
            Some(JobMode::Tune) => Scope::Replica,
            _ => topology.collective_scope(),
        }
    }

    /// The servers of a tuning job register with its tracker.
    fn is_elastic(&self, _: &Topology<'_>, _: &Role<'_>) -> bool {
        is_tuning(self)
    }

    fn is_retryable(&self, _: &Role<'_>, exit_code: i32, _: &str) -> bool {
        self.spec.compatibility_mode().is_retryable(exit_code)
    }

    fn is_dialed(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        ["Scheduler", "TunerTracker"].contains(&replica.role.name())
    }

    /// Returns true for each server, as under the Go operator, so that clients that read the master's log get the
    /// servers' logs.
    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == "Server"
    }

    /// Schedulers, servers and trackers print next to nothing.
    fn prints_progress(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        ["Worker", "Tuner"].contains(&replica.role.name()) && replica.index == 0
    }

    fn customize(&self, _: &Topology<'_>, _: &Replica<'_>, pod: &mut PodSpec) {
        let named = pod.scheduler_name.take().filter(|name| !name.is_empty());
        pod.scheduler_name = named.or_else(|| self.spec.scheduler_name.clone());
    }

    /// Returns the Go operator's message, which names the kind `mxjob` in failures and `MXJob` otherwise.
    fn message(&self, milestone: &Milestone<'_>) -> String {
        let kind = match milestone {
            Milestone::Failed { .. } => "mxjob",
            _ => "MXJob",
        };
        milestone.describe(kind, &self.name_any())
    }

    fn definition() -> CustomResourceDefinition {
        definition::definition()
    }
}

impl JobMode {
    fn word(self) -> &'static str {
        let [train, tune] = Self::WORDS;
        match self {
            Self::Train => train,
            Self::Tune => tune,
        }
    }

    fn roles(self) -> &'static [&'static str] {
        match self {
            Self::Train => &["Scheduler", "Server", "Worker"],
            Self::Tune => &["TunerTracker", "TunerServer", "Tuner"],
        }
    }

    /// Returns a list of roles. At least one of them must have a replica. The usual role comes first.
    fn deciding(self) -> &'static [&'static str] {
        match self {
            Self::Train => &["Worker", "Scheduler"],
            Self::Tune => &["Tuner"],
        }
    }
}

fn is_training(job: &MXJob) -> bool {
    job.spec.mode() == Some(JobMode::Train)
}

fn is_tuning(job: &MXJob) -> bool {
    job.spec.mode() == Some(JobMode::Tune)
}
