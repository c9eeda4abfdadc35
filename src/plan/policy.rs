//! Evaluates a job's failure policy for a failure.

use crate::api::{FailureAction, FailurePolicy, FailureRule, OnExitCodes};
use crate::job::{Role, Scope};

use super::failure::{Failure, FailureCause};
use super::observed::{DISRUPTION_TARGET, PodRecord, Termination};
use super::pod_end::{counted_containers, main_name};

/// Returns the action of the first rule that matches the failure, if any. `pod` is the failed pod, if it still
/// exists.
pub(super) fn action<'p>(
    policy: &'p FailurePolicy,
    role: &Role<'_>,
    failure: &Failure,
    pod: Option<&PodRecord>,
) -> Option<&'p FailureAction> {
    let mut rules = policy.rules.iter().filter(|rule| rule.applies_to(role.name()));
    rules
        .find(|rule| matches(rule, role, failure, pod))?
        .action
        .as_ref()
}

fn matches(rule: &FailureRule, role: &Role<'_>, failure: &Failure, pod: Option<&PodRecord>) -> bool {
    if let Some(codes) = &rule.on_exit_codes {
        // The deletion or eviction of a pod ends its processes, and the operator may see the pod before they have
        // ended. So the exit codes of a lost pod are ignored.
        let pod = pod.filter(|_| failure.cause != FailureCause::Lost);
        return pod.is_some_and(|pod| {
            ends(codes, pod, role, failure.cause)
                .any(|(container, end)| end.exit_code != 0 && codes.matches(container, end.exit_code))
        });
    }
    let Some(conditions) = &rule.on_pod_conditions else {
        return true;
    };
    let is_disrupted = failure.cause == FailureCause::Lost || pod.is_some_and(|pod| pod.disrupted);
    conditions.iter().any(|wanted| {
        let has_it = |pod: &PodRecord| {
            let mut conditions = pod.conditions.iter();
            conditions.any(|(type_, status)| *type_ == wanted.type_ && status == wanted.status())
        };
        pod.is_some_and(has_it)
            || is_disrupted && (&*wanted.type_, wanted.status()) == (DISRUPTION_TARGET, "True")
    })
}

/// Returns the ends of the containers that a rule applies to: the container that the rule names, or those that count
/// for the training. An earlier end counts only if the failure is a restart of the container by the kubelet.
fn ends<'p>(
    codes: &'p OnExitCodes,
    pod: &'p PodRecord,
    role: &'p Role<'_>,
    cause: FailureCause,
) -> impl Iterator<Item = (&'p str, &'p Termination)> {
    let named = codes.container_name.as_deref().filter(|name| !name.is_empty());
    let named = named.map(|name| pod.containers.iter().filter(move |c| c.name == name));
    let counted = match &named {
        Some(_) => None,
        None => Some(counted_containers(pod, main_name(role))),
    };
    let containers = named.into_iter().flatten().chain(counted.into_iter().flatten());
    containers.filter_map(move |c| {
        let earlier = c
            .last
            .as_ref()
            .filter(|_| cause == FailureCause::RestartedInPlace);
        Some((c.name.as_str(), c.ended.as_ref().or(earlier)?))
    })
}

/// Returns the scope that an action restarts, if the action restarts a certain scope.
pub(super) fn scope(action: &FailureAction) -> Option<Scope> {
    match action {
        FailureAction::RestartJob => Some(Scope::Job),
        FailureAction::RestartRole => Some(Scope::Role),
        FailureAction::RestartReplica => Some(Scope::Replica),
        FailureAction::FailJob | FailureAction::Ignore | FailureAction::Other(_) => None,
    }
}
