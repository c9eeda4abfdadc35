//! What a job's failure policy says of a failure.

use crate::api::{FailureAction, FailurePolicy, FailureRule, RestartScope};

use super::failure::{Failure, FailureCause};
use super::observed::{PodRecord, Termination};

/// The condition of a pod that the cluster takes away.
const DISRUPTION: &str = "DisruptionTarget";

/// What the first rule that a failure matches says, if any does. `pod` is the failed pod, if it is still there.
pub(super) fn action<'p>(
    policy: &'p FailurePolicy,
    role: &str,
    failure: &Failure,
    pod: Option<&PodRecord>,
) -> Option<&'p FailureAction> {
    let mut rules = policy.rules.iter().filter(|rule| rule.concerns(role));
    rules.find(|rule| matches(rule, failure, pod))?.action.as_ref()
}

fn matches(rule: &FailureRule, failure: &Failure, pod: Option<&PodRecord>) -> bool {
    if let Some(codes) = &rule.on_exit_codes {
        return ends(pod)
            .any(|(container, end)| end.exit_code != 0 && codes.matches(container, end.exit_code));
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
        pod.is_some_and(has_it) || is_disrupted && (&*wanted.type_, wanted.status()) == (DISRUPTION, "True")
    })
}

/// How the pod's containers ended, the ones that were restarted before that.
fn ends(pod: Option<&PodRecord>) -> impl Iterator<Item = (&str, &Termination)> {
    let containers = pod.into_iter().flat_map(|pod| &pod.containers);
    containers.filter_map(|c| Some((c.name.as_str(), c.ended.as_ref().or(c.last.as_ref())?)))
}

/// What restarts by an action, if it says so.
pub(super) fn scope(action: &FailureAction) -> Option<&'static RestartScope> {
    static SCOPES: [RestartScope; 3] = [RestartScope::Job, RestartScope::Role, RestartScope::Replica];
    let [job, role, replica] = &SCOPES;
    match action {
        FailureAction::RestartJob => Some(job),
        FailureAction::RestartRole => Some(role),
        FailureAction::RestartReplica => Some(replica),
        FailureAction::FailJob | FailureAction::Ignore | FailureAction::Other(_) => None,
    }
}
