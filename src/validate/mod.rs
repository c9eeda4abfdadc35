//! Checks a raw spec. Returns a valid job, or all errors with their fields.
//!
//! [`validate`] is pure and total: it accepts any object that decodes. Rendering and planning take only its result,
//! [`ValidJob`], so no later step reads a raw spec.

pub mod annotations;
mod layout;
mod leftovers;
pub mod manifest;
mod misplaced;
mod objects;
mod pod;
pub(crate) mod policies;
pub(crate) mod progress;
mod prune;
mod roles;
pub(crate) mod schema;
mod template;
mod texts;
mod undecodable;
pub mod value;

pub use annotations::AnnotatedJob;
pub use kube_schema::quantity::amount;
pub use kube_schema::{field, item};
pub(crate) use layout::service_name as common_service_name;
pub use progress::{MAX_WATCHED, Progress};
pub(crate) use roles::role_without_spec;
pub use schema::UNKNOWN_FIELD;
pub(crate) use template::framework_port;
pub(crate) use texts::MUST_BE_SET;
pub use undecodable::undecodable;

use std::collections::BTreeMap;
use std::time::Duration;

use kube_schema::{FieldPath, names};

use crate::api::labels::LabelKeys;
use crate::api::{CleanPodPolicy, FailurePolicy, JobSuccessPolicy, Layout, RestartScope, RunPolicy};
use crate::job::{
    AnyJob, FailureTolerance, FieldErrors, Kind, Outcome, Replica, ReplicaNames, Replicas, Role,
    RoleDefinition, Scope, Settings, SharedEnvironment, SharedTexts, StartCondition, Topology, TrainingJob,
    hook,
};

/// The maximum size of one environment variable in Linux, in bytes: `NAME=VALUE` and its final zero. A container with
/// a longer variable can never start.
pub const MAX_ENV_BYTES: usize = 131_072;

/// A job that can be rendered and planned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValidJob<'a> {
    /// The job, including the fields that its [annotations] stand for.
    pub job: AnnotatedJob<'a>,
    /// The roles and names of the job.
    pub topology: Topology<'a>,
    /// The run policy of the job, defaults applied.
    pub policy: Policy,
    /// The common part of its replicas' environments, if the job is compact.
    pub(crate) shared: Option<SharedEnvironment>,
    pub(crate) keys: LabelKeys,
}

/// A run policy with its defaults applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The pods that are deleted at the end; never `Other`.
    pub clean_pods: CleanPodPolicy,
    /// The seconds from the job's end to its deletion.
    pub ttl_seconds: Option<i64>,
    /// The seconds from the job's end in which containers beside the framework's may continue.
    pub sidecar_grace_seconds: i64,
    /// The seconds from the job's start to its failure.
    pub active_deadline_seconds: Option<i64>,
    /// The number of restarts before the job fails.
    pub backoff_limit: Option<i32>,
    /// The scope that restarts together, if the job or the operator sets one; never `Other`.
    pub restart_scope: Option<RestartScope>,
    /// True if the replica that the others dial has a service with a stable address.
    pub stable_address: bool,
    /// The failure policy, which is applied before restart policies.
    pub failure: FailurePolicy,
    /// The success policy, if the job sets one.
    pub success: Option<JobSuccessPolicy>,
    /// The progress policy, if the job sets one.
    pub progress: Option<Progress>,
    /// True if the job is suspended: it must have no pods.
    pub suspend: bool,
    /// True if another controller runs the job, so that this operator leaves it alone.
    pub is_for_another_controller: bool,
    /// The grace period of a success while other replicas still run.
    pub success_grace_period: Duration,
    /// The grace period of a failure by exit code while other replicas of its restart scope still run.
    pub failure_grace_period: Duration,
}

/// Checks a job. To check many, make their [`Kind`] once and call [`validate_any`], because the checks of a kind and its
/// schemas are derived anew for each.
///
/// # Errors
/// Returns every error of a single field. If there is none, returns every error that concerns several fields.
pub fn validate<'a, J: TrainingJob>(job: &'a J, settings: &Settings) -> Result<ValidJob<'a>, FieldErrors> {
    validate_any(&Kind::of::<J>(), job, settings)
}

/// Checks a job of `kind`.
///
/// # Errors
/// Returns every error of a single field. If there is none, returns every error that concerns several fields.
pub fn validate_any<'a>(
    kind: &Kind,
    job: &'a dyn AnyJob,
    settings: &Settings,
) -> Result<ValidJob<'a>, FieldErrors> {
    check(kind, job, settings, false)
}

/// Checks a job that was found valid before. The checks that compute the replicas' environments are skipped, because
/// they take longest.
pub fn validate_again<'a>(
    kind: &Kind,
    job: &'a dyn AnyJob,
    settings: &Settings,
) -> Result<ValidJob<'a>, FieldErrors> {
    check(kind, job, settings, true)
}

/// Makes the checks that need a job whose fields are all valid by themselves.
fn check_whole(kind: &Kind, job: &dyn AnyJob, topology: &Topology<'_>, errors: &mut FieldErrors) {
    check_hooks_of_roles(job, topology, errors);
    if !errors.is_empty() {
        return;
    }
    check_environment(job, topology, errors);
    hook("checks", || {
        kind.checks()
            .iter()
            .for_each(|check| check.add_errors(job, topology, errors));
    });
    job.validate(topology, errors);
    if errors.is_empty() {
        objects::check(job, topology, errors);
    }
}

/// Checks what the kind's hooks return for its roles: no two replicas have one name, and no role waits for a role that
/// the kind does not have. These are mistakes of the kind's author, which the first job reveals.
fn check_hooks_of_roles(job: &dyn AnyJob, topology: &Topology<'_>, errors: &mut FieldErrors) {
    let roles = topology.roles.iter().filter(|role| role.replicas > 0);
    let roles: Vec<_> = roles.map(|role| (role, role.pod_name(0))).collect();
    for (n, (role, name)) in roles.iter().enumerate() {
        let is_single = matches!(role.names, ReplicaNames::Single(_));
        let mut others = roles[..n].iter();
        if is_single && role.replicas > 1
            || others.any(|(other, others_name)| role.may_have(others_name) || other.may_have(name))
        {
            errors.push(
                &role.field,
                format!("two replicas would have the name {name}"),
                "this is a mistake in the operator: return a name of its own for each replica from replica_names",
            );
        }
        let is_taken = |name: &&String| {
            let mut others = roles.iter().map(|(other, _)| other);
            others.any(|other| other.definition.has_service && other.may_serve(name, role))
        };
        if let Some(name) = role.service.as_ref().filter(is_taken) {
            errors.push(
                &role.field,
                format!("two replicas would have a service of the name {name}"),
                "this is a mistake in the operator: pass another name to RoleDefinition::service",
            );
        }
        let is_class = |class: &str| job.framework().roles.iter().any(|role| role.name == class);
        let mut first = job.starts_after(topology, role).iter();
        if let Some(unknown) = first.find(|class| !is_class(class) || **class == role.class()) {
            errors.push(
                &role.field,
                format!("role {} must not start after {unknown}", role.name()),
                "this is a mistake in the operator: return names of other roles from starts_after",
            );
        }
    }
}

fn check<'a>(
    kind: &Kind,
    job: &'a dyn AnyJob,
    settings: &Settings,
    was_valid: bool,
) -> Result<ValidJob<'a>, FieldErrors> {
    let mut errors = FieldErrors::default();
    let meta = job.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    match name {
        "" => errors.push("metadata.name", MUST_BE_SET, texts::job_names()),
        name if job.framework().has_services() && names::label_1035(name).is_some() => {
            errors.bad_job_name("metadata.name", name);
        }
        name if name.len() > names::MAX_LABEL_CHARS => errors.long_name("metadata.name", name.len()),
        name if names::subdomain(name).is_some() => errors.bad_object_name("metadata.name", name),
        _ => {}
    }
    template::check_labels(FieldPath::At("metadata"), meta, &mut errors);
    let stored = job;
    let annotated = annotations::apply(kind, stored, &mut errors);
    let job = &*annotated.job;
    let wanted = job.run_policy();
    let policy = check_policy(job, &wanted, settings, &mut errors);
    // Annotations never stand for a role.
    let roles = roles::check(stored, &mut errors);
    policies::check_failure_policy(
        job,
        &job.run_policy_field("failurePolicy"),
        &policy.failure,
        &roles,
        &mut errors,
    );
    if let Some(success) = &policy.success {
        let field = job.run_policy_field("successPolicy");
        policies::check_success_policy(job, &field, success, &roles, &mut errors);
    }
    if let Some(progress) = &policy.progress {
        progress::check_watched(&job.run_policy_field("progress"), progress, &roles, &mut errors);
    }
    let is_compact = wanted.layout == Some(Layout::Compact) && job.framework().has_services();
    let topology = Topology {
        job: name,
        namespace: meta.namespace.as_deref().unwrap_or("default"),
        uid: meta.uid.as_deref().unwrap_or_default(),
        roles,
        common_service: is_compact.then(|| layout::service_name(name)),
        settings: settings.clone(),
        shared_texts: SharedTexts::default(),
        contents: BTreeMap::new(),
    };
    check_host_names(&topology, &mut errors);
    layout::check(&topology, &mut errors);
    if errors.is_empty() && !was_valid {
        check_whole(kind, job, &topology, &mut errors);
    }
    if !errors.is_empty() {
        return Err(annotated.relocate(errors));
    }
    let shared = is_compact.then(|| SharedEnvironment::of(job, &topology));
    Ok(ValidJob {
        keys: job.framework().keys().into(),
        job: annotated.job,
        shared: shared.flatten(),
        topology,
        policy,
    })
}

impl ValidJob<'_> {
    /// Returns the outcome of the replicas' states, by the job's own success policy or else by its kind's.
    pub fn outcome(&self, replicas: &Replicas<'_>) -> Outcome {
        let of_kind = self.job.outcome(replicas);
        match &self.policy.success {
            Some(policy) => replicas.decided_by_policy(policy, of_kind),
            None => of_kind,
        }
    }

    /// Returns the scope that restarts with a failed replica of `role`. A replica whose failures never matter
    /// restarts alone.
    pub fn restart_scope(&self, role: &Role<'_>) -> Scope {
        if self.job.tolerance(role) == FailureTolerance::Always {
            return Scope::Replica;
        }
        let of_policy = self.policy.restart_scope.as_ref().map(Scope::from);
        of_policy.unwrap_or_else(|| self.job.restart_scope(&self.topology, role))
    }

    /// Returns true if the output of the replica is read, by the progress policy of the job.
    pub fn watches(&self, replica: &Replica<'_>) -> bool {
        let progress = self.policy.progress.as_ref();
        progress
            .is_some_and(|progress| progress.watches_all || self.job.prints_progress(&self.topology, replica))
    }

    /// Returns the roles that `role` waits for, in the order of the job, each with the state that all its replicas must
    /// have reached.
    pub fn waits_for(&self, role: &Role<'_>) -> Vec<(&Role<'_>, StartCondition)> {
        let first = self.job.starts_after(&self.topology, role);
        let mut earlier = true;
        let others = self.topology.roles.iter().filter_map(|other| {
            earlier &= other.slug != role.slug;
            if first.contains(&other.class()) {
                return Some((other, role.definition.start_condition));
            }
            let is_before = role.definition.in_order && earlier && other.class() == role.class();
            is_before.then_some((other, StartCondition::Succeeded))
        });
        others.collect()
    }

    /// Returns true if the success of `role` outlasts restarts and suspensions, because its job runs in steps.
    pub fn succeeds_once(&self, role: &Role<'_>) -> bool {
        let is_step = |definition: &RoleDefinition| {
            definition.in_order || definition.start_condition == StartCondition::Succeeded
        };
        let mut roles = self.topology.roles.iter();
        let waits = |other: &Role<'_>| {
            let mut first = self.waits_for(other).into_iter();
            first.any(|(first, state)| first.slug == role.slug && state == StartCondition::Succeeded)
        };
        // Most kinds have no steps, and this is asked for each role in each plan.
        self.job.framework().roles.iter().any(is_step) && (role.definition.in_order || roles.any(waits))
    }
}

fn check_policy(
    job: &dyn AnyJob,
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
    let managers = managers(job, policy);
    for (field, manager) in &managers {
        if !RunPolicy::MANAGERS.contains(&manager.as_str()) {
            errors.unknown_word(field, manager, &RunPolicy::MANAGERS);
        }
    }
    if let [(nested, one), (top, other)] = &managers[..]
        && one != other
    {
        errors.differs_from(top, nested);
    }
    for (field, value) in [
        ("backoffLimit", policy.backoff_limit.map(i64::from)),
        ("activeDeadlineSeconds", policy.active_deadline_seconds),
        (
            "ttlSecondsAfterFinished",
            policy.ttl_seconds_after_finished.map(i64::from),
        ),
        (
            "sidecarGracePeriodSeconds",
            policy.sidecar_grace_period_seconds.map(i64::from),
        ),
    ] {
        if let Some(negative) = value.filter(|v| *v < 0) {
            errors.too_small(path(field), negative, 0.0);
        }
    }
    let mut checked = Policy {
        clean_pods,
        ttl_seconds: policy.ttl_seconds_after_finished.map(i64::from),
        active_deadline_seconds: policy.active_deadline_seconds,
        backoff_limit: policy.backoff_limit,
        restart_scope: restart_scope.or_else(|| settings.restart_scope.clone()),
        sidecar_grace_seconds: policy
            .sidecar_grace_period_seconds
            .map_or(settings.sidecar_grace_seconds, i64::from),
        stable_address: policy.stable_address.unwrap_or(job.framework().stable_address),
        failure: policy.failure_policy.clone().unwrap_or_default(),
        success: policy.success_policy.clone(),
        progress: None,
        suspend: policy.suspend.unwrap_or(false),
        is_for_another_controller: managers
            .iter()
            .any(|(_, manager)| RunPolicy::is_another_controller(manager)),
        success_grace_period: settings.success_grace_period,
        failure_grace_period: settings.failure_grace_period,
    };
    let progress = policy.progress.as_ref();
    checked.progress = progress.map(|wanted| progress::check(&path("progress"), wanted, &checked, errors));
    checked
}

/// Returns the fields of a job that name its controller, with the names: at most one in the run policy, then one in
/// the spec itself.
fn managers(job: &dyn AnyJob, policy: &RunPolicy) -> Vec<(String, String)> {
    let nested = policy.managed_by.clone();
    let nested = nested.map(|manager| (job.run_policy_field("managedBy"), manager));
    let top = job
        .managed_by()
        .map(|manager| ("spec.managedBy".to_owned(), manager.to_owned()));
    let all = nested.into_iter().chain(top);
    all.filter(|(_, manager)| !manager.is_empty()).collect()
}

/// Returns the field that names a controller other than this operator, and the name. Returns None if this operator
/// runs the job. A job that names two controllers is not valid, and is not run here if one of them is another
/// controller.
pub fn other_manager(job: &dyn AnyJob) -> Option<(String, String)> {
    let policy = job.run_policy();
    let mut managers = managers(job, &policy).into_iter();
    managers.find(|(_, manager)| RunPolicy::is_another_controller(manager))
}

/// Checks the longest host name. Host names are service names, so they must be labels.
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
    let excess = longest.saturating_sub(names::MAX_LABEL_CHARS);
    if excess > 0 {
        errors.long_service("metadata.name", longest, excess);
    }
}

/// Checks the size of environment variables. The last replica of a role has the longest environment.
fn check_environment(job: &dyn AnyJob, topology: &Topology<'_>, errors: &mut FieldErrors) {
    for role in &topology.roles {
        let Some(index) = role.replicas.checked_sub(1) else {
            continue;
        };
        for variable in job.env(topology, &Replica { role, index }) {
            let bytes = variable.name.len() + variable.value.as_ref().map_or(0, String::len) + 2;
            if bytes > MAX_ENV_BYTES {
                errors.push(
                    job.framework().roles_path(),
                    format!(
                        "environment variable {} of {} must be at most {MAX_ENV_BYTES} bytes, the limit of Linux (would have {bytes} with {} replicas)",
                        variable.name, role.pod_name(index), topology.total(),
                    ),
                    "use fewer replicas or a shorter job name",
                );
                return;
            }
        }
    }
}
