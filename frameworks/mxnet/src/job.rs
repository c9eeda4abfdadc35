//! What makes an MXJob an MXJob.

use k8s_openapi::api::core::v1::{EnvVar, PodSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use training_job::api::{JobStatus, ReplicaSpecs, RestartPolicy, RestartScope, RunPolicy, SuccessPolicy};
use training_job::{
    FieldErrors, Framework, Outcome, Replica, Replicas, Role, RoleKind, Topology, TrainingJob,
};
use training_job::{Rule, any_replica};

use crate::{JobMode, MXJob, definition, environment};

impl TrainingJob for MXJob {
    const FRAMEWORK: Framework = Framework {
        name: "mxnet",
        controller: "mxjob-controller",
        container: "mxnet",
        port_name: "mxjob-port",
        port: 9091,
        restart_policy: RestartPolicy::Never,
        specs_field: "mxReplicaSpecs",
        roles: &[
            RoleKind::single("Scheduler"),
            RoleKind::new("Server"),
            RoleKind::new("Worker"),
            RoleKind::single("TunerTracker"),
            RoleKind::new("TunerServer"),
            RoleKind::new("Tuner"),
        ],
    };

    fn replica_specs(&self) -> &ReplicaSpecs {
        &self.spec.mx_replica_specs
    }

    fn run_policy(&self) -> RunPolicy {
        self.spec.merged_run_policy()
    }

    fn run_policy_field(&self, field: &str) -> String {
        if self.spec.has_inline(field) {
            format!("spec.{field}")
        } else {
            format!("spec.runPolicy.{field}")
        }
    }

    fn status(&self) -> Option<&JobStatus> {
        self.status.as_ref()
    }

    fn env(&self, topology: &Topology<'_>, replica: &Replica<'_>) -> Vec<EnvVar> {
        environment::of(topology, replica)
    }

    fn validate(&self, topology: &Topology<'_>, errors: &mut FieldErrors) {
        errors.check_word("spec.successPolicy", self.spec.success_policy.as_ref());
        let (mode, deciding) = match self.spec.mode() {
            None => {
                return errors.unknown_word("spec.jobMode", &self.spec.job_mode, &JobMode::WORDS);
            }
            Some(mode) => (mode.word(), mode.deciding()),
        };
        if deciding.iter().all(|role| topology.replicas(role) == 0) {
            let (problem, remedy) = endless(mode, deciding[0]);
            errors.push("spec.mxReplicaSpecs", problem, remedy);
        }
    }

    fn rules() -> Vec<Rule> {
        [
            (JobMode::Train, r#"["", "MXTrain"]"#),
            (JobMode::Tune, r#"["MXTune"]"#),
        ]
        .map(|(mode, words)| {
            let (problem, remedy) = endless(mode.word(), mode.deciding()[0]);
            let decided = any_replica(&Self::FRAMEWORK, mode.deciding());
            let expression = format!("!(self.?jobMode.orValue(\"\") in {words}) || {decided}");
            Rule::new(expression, format!("{problem}; {remedy}")).at("mxReplicaSpecs")
        })
        .into()
    }

    /// A training's servers wait for the scheduler's address, and without one it is empty.
    fn warn(&self, topology: &Topology<'_>, warnings: &mut FieldErrors) {
        let is_training = self.spec.mode() == Some(JobMode::Train);
        if let (true, Some(server), None) = (is_training, topology.role("Server"), topology.role("Scheduler"))
        {
            warnings.push(
                server.field.as_str(),
                "servers find no workers without a scheduler",
                "add a Scheduler with 1 replica, or remove the servers",
            );
        }
    }

    /// The scheduler's end is the end of a training: it waits for all servers and workers. Without a
    /// scheduler, or by `successPolicy: AllWorkers`, the workers decide. A tuning job is done when
    /// its tuner is: tracker and servers never end by themselves.
    fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        if self.spec.mode() == Some(JobMode::Tune) {
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

    /// A worker, server or scheduler that is restarted alone finds no place in a running cluster, and
    /// all hang without a word. Tuners and their servers come and go as they like.
    fn restart_scope(&self, topology: &Topology<'_>, _: &Role<'_>) -> RestartScope {
        match self.spec.mode() {
            Some(JobMode::Tune) => RestartScope::Replica,
            _ if topology.total() > 1 => RestartScope::Job,
            _ => RestartScope::Replica,
        }
    }

    /// In the nested shape, as the training operator: from 128 on. In the inline shape, as the
    /// stand-alone operator documents: interrupted, killed, terminated, and 138 for the user's own use.
    fn is_retryable(&self, exit_code: i32) -> bool {
        if self.spec.is_inline() {
            matches!(exit_code, 130 | 137 | 138 | 143)
        } else {
            exit_code >= 128
        }
    }

    /// Every server, as under the Go operator: clients that ask for the master's logs get the servers'.
    fn is_master(&self, _: &Topology<'_>, replica: &Replica<'_>) -> bool {
        replica.role.name() == "Server"
    }

    fn customize(&self, _: &Topology<'_>, _: &Replica<'_>, pod: &mut PodSpec) {
        let named = pod.scheduler_name.take().filter(|name| !name.is_empty());
        pod.scheduler_name = named.or_else(|| self.spec.scheduler_name.clone());
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

    /// The roles of which one must have a replica, the usual one first.
    fn deciding(self) -> &'static [&'static str] {
        match self {
            Self::Train => &["Worker", "Scheduler"],
            Self::Tune => &["Tuner"],
        }
    }
}

fn endless(mode: &str, role: &str) -> (String, String) {
    (
        format!("an {mode} job without a {role} would never end"),
        format!("add a {role}"),
    )
}
