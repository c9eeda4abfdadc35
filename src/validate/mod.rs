//! Raw spec → a valid job, or every error with its field.
//!
//! [`validate`] is pure and total: any object that decodes gives one of the two. What comes out,
//! [`ValidJob`], is all that render and plan take, so nothing after this step looks at raw specs.

mod layout;
pub mod manifest;
mod mend;
pub(crate) mod policies;
mod roles;
pub(crate) mod schema;
mod template;
mod texts;

use kube_syntax::names;
pub use kube_syntax::quantity::amount;
pub use kube_syntax::{field, item};
pub(crate) use template::framework_port;

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};

use crate::api::{CleanPodPolicy, FailurePolicy, JobSuccessPolicy, Layout, RestartScope, RunPolicy};
use crate::job::{
    FailureTolerance, FieldErrors, JobObject, ObjectKind, Outcome, Replica, ReplicaState, Replicas, Role,
    Settings, SharedEnvironment, Texts, Topology, TrainingJob,
};
use kube_syntax::FieldPath;

/// The most bytes of `NAME=VALUE` and its final zero that Linux takes for one environment variable.
/// A container with a longer one can never start.
pub const MAX_ENV_BYTES: usize = 131_072;

/// A job that can be rendered and planned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValidJob<'a, J> {
    /// The job.
    pub job: &'a J,
    /// Its roles and names.
    pub topology: Topology<'a>,
    /// Its run policy, defaults applied.
    pub policy: Policy,
    /// What is told once of its replicas' environments.
    pub(crate) shared: Option<SharedEnvironment>,
}

/// A run policy with its defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Which pods go at the end; never `Other`.
    pub clean_pods: CleanPodPolicy,
    /// Seconds from end to deletion.
    pub ttl_seconds: Option<i64>,
    /// Seconds from start to failure.
    pub active_deadline_seconds: Option<i64>,
    /// Restarts before failure.
    pub backoff_limit: Option<i32>,
    /// What restarts together, if the job or the operator says; never `Other`.
    pub restart_scope: Option<RestartScope>,
    /// What follows from failures before restart policies are asked.
    pub failure: FailurePolicy,
    /// Whose success is the job's, if the job says it.
    pub success: Option<JobSuccessPolicy>,
    /// Whether the job is to have no pods.
    pub suspend: bool,
    /// Whether another controller runs the job, so that this one leaves it alone.
    pub is_for_another_controller: bool,
    /// How long a success is held while other replicas still run.
    pub success_hold: Duration,
    /// How long a failure by exit code is held while other replicas of its restart scope still run.
    pub failure_hold: Duration,
}

/// Checks a job.
///
/// # Errors
/// All of the job's field errors at once.
pub fn validate<'a, J: TrainingJob>(job: &'a J, settings: &Settings) -> Result<ValidJob<'a, J>, FieldErrors> {
    check(job, settings, check_whole)
}

/// The same for a job that was found valid before: what asks for the replicas' environments, which takes longest,
/// is not asked again.
pub(crate) fn validate_again<'a, J: TrainingJob>(
    job: &'a J,
    settings: &Settings,
) -> Result<ValidJob<'a, J>, FieldErrors> {
    check(job, settings, |_, _, _| {})
}

/// What is checked once all fields are fine by themselves.
type CheckWhole<J> = fn(&J, &Topology<'_>, &mut FieldErrors);

fn check_whole<J: TrainingJob>(job: &J, topology: &Topology<'_>, errors: &mut FieldErrors) {
    check_environment(job, topology, errors);
    for requirement in J::requirements() {
        if let Some((problem, remedy)) = requirement.violation(job, topology) {
            errors.push(J::FRAMEWORK.roles_path(), problem, remedy);
        }
    }
    job.validate(topology, errors);
    if errors.is_empty() {
        check_objects(job, topology, errors);
    }
}

/// A kind that makes what it does not declare would have objects that nobody watches: a mistake of its author, to be found
/// by the first job.
fn check_objects<J: TrainingJob>(job: &J, topology: &Topology<'_>, errors: &mut FieldErrors) {
    let replicas = Replicas::new(topology, |_, _| ReplicaState::Absent);
    let mut known = BTreeSet::new();
    for object in job.objects(topology, &replicas) {
        let title = format!("{} {:?}", object.kind.kind, object.name());
        if J::FRAMEWORK.objects.iter().all(|d| d.kind != object.kind) {
            errors.push(
                "spec",
                format!("its {title} is of a kind that {} does not declare", J::kind(&())),
                "this is a mistake in the operator: declare the kind by Framework::objects",
            );
        } else if object.name().is_empty() || !known.insert((object.kind, object.name().to_owned())) {
            errors.push(
                "spec",
                format!("its {title} has no name of its own"),
                "this is a mistake in the operator: name each object once",
            );
        } else if is_of_a_replica(topology, &object) {
            errors.push(
                "spec",
                format!("its {title} has the name of a replica"),
                "use another name for the job",
            );
        }
    }
}

/// Whether an object would be in the place of what a replica has.
fn is_of_a_replica(topology: &Topology<'_>, object: &JobObject) -> bool {
    if object.kind == ObjectKind::of::<Pod>() {
        return topology.has_replica_named(object.name());
    }
    object.kind == ObjectKind::of::<Service>() && topology.has_service_named(object.name())
}

fn check<'a, J: TrainingJob>(
    job: &'a J,
    settings: &Settings,
    check_whole: CheckWhole<J>,
) -> Result<ValidJob<'a, J>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let meta = job.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    match name {
        "" => errors.push("metadata.name", "it is missing", texts::JOB_NAMES),
        name if J::FRAMEWORK.has_services() && names::label_1035(name).is_some() => {
            errors.bad_job_name("metadata.name", name);
        }
        name if name.len() > names::LABEL_MAX => errors.long_name("metadata.name", name.len()),
        _ => {}
    }
    template::check_labels(FieldPath::At("metadata"), meta, &mut errors);
    let wanted = job.run_policy();
    let policy = check_policy(job, &wanted, settings, &mut errors);
    let roles = roles::check(job, &mut errors);
    policies::check_failure_policy::<J>(
        &job.run_policy_field("failurePolicy"),
        &policy.failure,
        &roles,
        &mut errors,
    );
    if let Some(success) = &policy.success {
        let field = job.run_policy_field("successPolicy");
        policies::check_success_policy::<J>(&field, success, &roles, &mut errors);
    }
    let is_compact = wanted.layout == Some(Layout::Compact) && J::FRAMEWORK.has_services();
    let topology = Topology {
        job: name,
        namespace: meta.namespace.as_deref().unwrap_or("default"),
        uid: meta.uid.as_deref().unwrap_or_default(),
        roles,
        common_service: is_compact.then(|| layout::service_name(name)),
        settings: settings.clone(),
        texts: Texts::default(),
    };
    check_host_names(&topology, &mut errors);
    layout::check(&topology, &mut errors);
    if errors.is_empty() {
        check_whole(job, &topology, &mut errors);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(ValidJob {
        job,
        shared: is_compact
            .then(|| SharedEnvironment::of(job, &topology))
            .flatten(),
        topology,
        policy,
    })
}

impl<J: TrainingJob> ValidJob<'_, J> {
    /// What the replicas' states mean: by the job's own success policy, or else its kind's.
    pub fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        let of_kind = self.job.outcome(replicas);
        match &self.policy.success {
            Some(policy) => replicas.decided_by_policy(policy, of_kind),
            None => of_kind,
        }
    }

    /// What restarts together with a failed replica of `role`. One whose failures never matter restarts alone.
    pub fn restart_scope(&self, role: &Role<'_>) -> RestartScope {
        if self.job.tolerance(role) == FailureTolerance::Always {
            return RestartScope::Replica;
        }
        self.policy
            .restart_scope
            .clone()
            .unwrap_or_else(|| self.job.restart_scope(&self.topology, role))
    }
}

fn check_policy<J: TrainingJob>(
    job: &J,
    policy: &RunPolicy,
    settings: &Settings,
    errors: &mut FieldErrors,
) -> Policy {
    let path = |field: &str| job.run_policy_field(field);
    errors.check_word(path("layout"), policy.layout.as_ref());
    let clean_pods = match policy.clean_pod_policy.clone() {
        None => settings.clean_pods.clone(),
        Some(CleanPodPolicy::Other(word)) if word.is_empty() => settings.clean_pods.clone(),
        Some(CleanPodPolicy::Other(word)) => {
            errors.unknown_word(path("cleanPodPolicy"), &word, CleanPodPolicy::WORDS);
            CleanPodPolicy::Running
        }
        Some(known) => known,
    };
    let restart_scope = match policy.restart_scope.clone() {
        Some(RestartScope::Other(word)) if word.is_empty() => None,
        Some(RestartScope::Other(word)) => {
            errors.unknown_word(path("restartScope"), &word, RestartScope::WORDS);
            None
        }
        known => known,
    };
    if let Some(word) = policy.managed_by.as_deref().filter(|word| !word.is_empty())
        && !RunPolicy::MANAGERS.contains(&word)
    {
        errors.unknown_word(path("managedBy"), word, &RunPolicy::MANAGERS);
    }
    for (field, value) in [
        ("backoffLimit", policy.backoff_limit.map(i64::from)),
        ("activeDeadlineSeconds", policy.active_deadline_seconds),
        (
            "ttlSecondsAfterFinished",
            policy.ttl_seconds_after_finished.map(i64::from),
        ),
    ] {
        if let Some(negative) = value.filter(|v| *v < 0) {
            errors.too_small(path(field), negative, 0.0);
        }
    }
    Policy {
        clean_pods,
        ttl_seconds: policy.ttl_seconds_after_finished.map(i64::from),
        active_deadline_seconds: policy.active_deadline_seconds,
        backoff_limit: policy.backoff_limit,
        restart_scope: restart_scope.or_else(|| settings.restart_scope.clone()),
        failure: policy.failure_policy.clone().unwrap_or_default(),
        success: policy.success_policy.clone(),
        suspend: policy.suspend.unwrap_or(false),
        is_for_another_controller: policy.is_for_another_controller(),
        success_hold: settings.success_hold,
        failure_hold: settings.failure_hold,
    }
}

/// Host names are service names, so the longest must be a label.
fn check_host_names(topology: &Topology<'_>, errors: &mut FieldErrors) {
    let last = |role: &Role<'_>| {
        let last = role
            .replicas
            .checked_sub(1)
            .filter(|_| role.definition.has_service)?;
        Some(role.host(last).len())
    };
    let common = topology.common_service.as_ref().map(String::len);
    let longest = topology
        .roles
        .iter()
        .filter_map(last)
        .chain(common)
        .max()
        .unwrap_or(0);
    let excess = longest.saturating_sub(names::LABEL_MAX);
    if excess > 0 {
        errors.long_service("metadata.name", longest, excess);
    }
}

/// The last replica of a role has the longest environment.
fn check_environment<J: TrainingJob>(job: &J, topology: &Topology<'_>, errors: &mut FieldErrors) {
    for role in &topology.roles {
        let Some(index) = role.replicas.checked_sub(1) else {
            continue;
        };
        for variable in job.env(topology, &Replica { role, index }) {
            let bytes = variable.name.len() + variable.value.as_ref().map_or(0, String::len) + 2;
            if bytes > MAX_ENV_BYTES {
                errors.push(
                    J::FRAMEWORK.roles_path(),
                    format!(
                        "with {} replicas, {} of {} would have {bytes} bytes, and Linux starts no process with more than {MAX_ENV_BYTES} in one variable",
                        topology.total(), variable.name, role.host(index),
                    ),
                    "use fewer replicas or a shorter job name",
                );
                return;
            }
        }
    }
}
