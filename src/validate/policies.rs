//! Checks the words, numbers and names of failure and success policies.

use kube_schema::FieldPath;

use crate::api::{
    FailureAction, FailurePolicy, FailureRule, JobSuccessPolicy, MAX_CONDITIONS, MAX_EXIT_CODES,
    MAX_POLICY_ROLES, MAX_RESTARTS_IN_WINDOW, MAX_RULES, OnExitCodes, RestartPolicy,
};
use crate::job::{AnyJob, Complaint, FieldErrors, Role};

use super::texts::MUST_BE_SET;

pub(crate) const TWO_MATCHERS: Complaint = Complaint {
    problem: "must not have both onExitCodes and onPodConditions",
    remedy: "split it into two rules",
};
pub(crate) const WINDOW_WITHOUT_LIMIT: Complaint = Complaint {
    problem: "requires maxRestarts",
    remedy: "set maxRestarts or remove windowSeconds",
};
pub(crate) const ALWAYS_WITH_RULES: Complaint = Complaint {
    problem: "restartPolicy must not be Always if failurePolicy has rules, because the operator then restarts only \
              failed replicas",
    remedy: "use OnFailure",
};
pub(crate) const INVALID_EXIT_CODES: Complaint = Complaint {
    problem: "must have at least one exit code, each from 1 to 255",
    remedy: "list the exit codes of failures",
};

/// Checks a failure policy at `path`.
pub(super) fn check_failure_policy(
    job: &dyn AnyJob,
    path: &str,
    policy: &FailurePolicy,
    roles: &[Role<'_>],
    errors: &mut FieldErrors,
) {
    errors.check_range(format!("{path}.maxRestarts"), policy.max_restarts, 0..);
    errors.check_range(format!("{path}.windowSeconds"), policy.window_seconds, 1..);
    if policy.window_seconds.is_some() {
        let max = i64::from(MAX_RESTARTS_IN_WINDOW);
        errors.check_range(format!("{path}.maxRestarts"), policy.max_restarts, ..=max);
        if policy.max_restarts.is_none() {
            errors.push_complaint(format!("{path}.windowSeconds"), &WINDOW_WITHOUT_LIMIT);
        }
    }
    let at = FieldPath::At(path);
    let rules = at.member("rules");
    check_length(&rules, policy.rules.len(), MAX_RULES, errors);
    for (n, rule) in policy.rules.iter().enumerate() {
        check_rule(job, &rules.item(n), rule, roles, errors);
    }
    let always = roles
        .iter()
        .filter(|role| role.restart_policy == RestartPolicy::Always);
    for role in always.filter(|_| !policy.rules.is_empty()) {
        errors.push_complaint(format!("{}.restartPolicy", role.field), &ALWAYS_WITH_RULES);
    }
}

fn check_rule(
    job: &dyn AnyJob,
    path: &FieldPath<'_>,
    rule: &FailureRule,
    roles: &[Role<'_>],
    errors: &mut FieldErrors,
) {
    let action = rule.action.as_ref().map_or("", FailureAction::as_str);
    match action {
        "" => errors.push(
            path.member("action"),
            MUST_BE_SET,
            format!("use one of {}", FailureAction::WORDS.join(", ")),
        ),
        _ => errors.check_word(path.member("action"), rule.action.as_ref()),
    }
    check_roles(job, path, &rule.roles, roles, errors);
    if rule.on_exit_codes.is_some() && rule.on_pod_conditions.is_some() {
        errors.push_complaint(*path, &TWO_MATCHERS);
    }
    if let Some(codes) = &rule.on_exit_codes {
        check_codes(&path.member("onExitCodes"), codes, rule, roles, errors);
    }
    let conditions = rule.on_pod_conditions.as_ref().map_or(0, Vec::len);
    check_length(
        &path.member("onPodConditions"),
        conditions,
        MAX_CONDITIONS,
        errors,
    );
}

fn check_codes(
    path: &FieldPath<'_>,
    codes: &OnExitCodes,
    rule: &FailureRule,
    roles: &[Role<'_>],
    errors: &mut FieldErrors,
) {
    errors.check_word(path.member("operator"), codes.operator.as_ref());
    let values = path.member("values");
    check_length(&values, codes.values.len(), MAX_EXIT_CODES, errors);
    if codes.values.is_empty() || codes.values.iter().any(|code| !(1..=255).contains(code)) {
        errors.push_complaint(values, &INVALID_EXIT_CODES);
    }
    let Some(name) = codes.container_name.as_deref().filter(|name| !name.is_empty()) else {
        return;
    };
    let mut applicable = roles.iter().filter(|role| rule.applies_to(role.name()));
    let has_it = |role: &Role<'_>| {
        let spec = role.template().spec.iter();
        let mut containers = spec.flat_map(|spec| &spec.containers);
        containers.any(|container| container.name == name)
    };
    if !applicable.any(has_it) {
        errors.push(
            path.member("containerName"),
            format!("must name a container of the rule's roles (is {name:?})"),
            "use one of theirs or remove it",
        );
    }
}

/// Checks a success policy at `path`.
pub(super) fn check_success_policy(
    job: &dyn AnyJob,
    path: &str,
    policy: &JobSuccessPolicy,
    roles: &[Role<'_>],
    errors: &mut FieldErrors,
) {
    errors.check_word(format!("{path}.operator"), policy.operator.as_ref());
    check_roles(job, &FieldPath::At(path), &policy.roles, roles, errors);
    let has_replicas = |name: &String| {
        roles
            .iter()
            .any(|role| role.replicas > 0 && role.name().eq_ignore_ascii_case(name))
    };
    if errors.is_empty() && !policy.roles.is_empty() && !policy.roles.iter().any(has_replicas) {
        errors.push(
            format!("{path}.roles"),
            "must include a role with replicas, because the job would never end otherwise",
            "name a role that has replicas",
        );
    }
}

/// Checks the names of roles in a policy. `roles` are those of the job, which may have names that its users chose.
fn check_roles(
    job: &dyn AnyJob,
    path: &FieldPath<'_>,
    named: &[String],
    roles: &[Role<'_>],
    errors: &mut FieldErrors,
) {
    let path = path.member("roles");
    let chosen = roles.iter().filter(|role| role.definition.source.is_open());
    let mut known = job.framework().fixed_role_names();
    known.extend(chosen.map(Role::name));
    check_length(&path, named.len(), MAX_POLICY_ROLES, errors);
    for (n, role) in named.iter().enumerate() {
        if !known.iter().any(|name| name.eq_ignore_ascii_case(role)) {
            errors.unknown_role(path.item(n), &job.kind(), role, &known);
        }
    }
}

fn check_length(path: &FieldPath<'_>, length: usize, max: usize, errors: &mut FieldErrors) {
    if length > max {
        errors.push(*path, format!("must have at most {max} items (has {length})"), "");
    }
}
