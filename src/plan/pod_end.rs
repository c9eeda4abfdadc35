//! Determines how a pod's training ended. The framework's container decides.

use jiff::Timestamp;

use crate::api::RestartPolicy;
use crate::job::Role;
use crate::render;

use super::observed::{ContainerKind, ContainerRecord, Phase, PodRecord, Termination};

/// The end of a replica's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodEnd {
    /// The replica succeeded, at this time if known.
    Good(Option<Timestamp>),
    /// The replica failed, at this time if known.
    Bad(Option<Timestamp>),
}

impl PodEnd {
    /// Returns the time of the end, if known.
    pub(super) fn at(self) -> Option<Timestamp> {
        match self {
            Self::Good(at) | Self::Bad(at) => at,
        }
    }
}

/// Returns the name of the framework's container in the pods of a role.
pub(super) fn main_name<'r>(role: &'r Role<'_>) -> Option<&'r str> {
    role.main_container().map(|container| container.name.as_str())
}

/// Returns how the replica of a pod ended, or None if it has not ended.
///
/// `main` is the framework's container. The replica has not ended while this container runs or its kubelet restarts
/// it. Once this container has ended, no other container matters. A pod that failed for a reason of its own, such as
/// its deadline, has not done its work even if the container ended with 0. A pod without the framework's container is
/// judged by its phase. A replica that is always replaced has failed whatever its exit code. `by_rules` is true for a job whose failure policy has rules.
pub(super) fn end_of(pod: &PodRecord, main: Option<&str>, role: &Role<'_>, by_rules: bool) -> Option<PodEnd> {
    let main = main
        .and_then(|name| pod.container(name))
        .map(|c| (&*c.name, c.ended.as_ref()));
    let (main, end) = main.unwrap_or_default();
    let judge = |end: &Termination| judge(end, role.definition.always_replaced);
    match (end, pod.phase) {
        (Some(end), Phase::Failed) if pod.reason.is_some() => Some(PodEnd::Bad(end.finished_at)),
        (Some(end), Phase::Succeeded | Phase::Failed) => Some(judge(end)),
        // The phase is Pending as long as any other container cannot start.
        (Some(end), _) if !is_restarted(role, main, end, by_rules) => Some(judge(end)),
        (None, Phase::Succeeded) if role.definition.always_replaced => Some(PodEnd::Bad(pod.ended_at())),
        (None, Phase::Succeeded) => Some(PodEnd::Good(pod.ended_at())),
        (None, Phase::Failed) => Some(PodEnd::Bad(pod.ended_at())),
        _ => None,
    }
}

fn judge(end: &Termination, is_always_bad: bool) -> PodEnd {
    match end.exit_code {
        0 if !is_always_bad => PodEnd::Good(end.finished_at),
        _ => PodEnd::Bad(end.finished_at),
    }
}

/// Returns true if the kubelet restarts the framework's container `main` of the role after this end. A container may
/// have a restart policy of its own.
fn is_restarted(role: &Role<'_>, main: &str, end: &Termination, by_rules: bool) -> bool {
    let containers = role.template().spec.iter().flat_map(|spec| &spec.containers);
    let own = containers
        .filter(|c| c.name == main)
        .find_map(|c| c.restart_policy.as_deref());
    let policy = own.unwrap_or_else(|| render::kubelet_policy(role, by_rules));
    policy == RestartPolicy::Always.as_str()
        || policy == RestartPolicy::OnFailure.as_str() && end.exit_code != 0
}

/// Returns true if the kubelet ends the pod without a request, because only native sidecars still run.
pub(super) fn ends_by_itself(pod: &PodRecord, role: &Role<'_>, by_rules: bool) -> bool {
    let regular = pod.containers.iter();
    let mut regular = regular
        .filter(|container| container.kind == ContainerKind::Regular)
        .peekable();
    let has_ended = |container: &ContainerRecord| {
        let end = container.ended.as_ref();
        end.is_some_and(|end| !is_restarted(role, &container.name, end, by_rules))
    };
    regular.peek().is_some() && regular.all(has_ended)
}

/// Returns the containers whose restarts by the kubelet count for the training: the framework's container, or all
/// regular containers of a pod without it; and the init containers.
pub(super) fn counted_containers<'p>(
    pod: &'p PodRecord,
    main: Option<&str>,
) -> impl Iterator<Item = &'p ContainerRecord> + Clone {
    let main = main.and_then(|name| pod.container(name)).map(|c| c.name.as_str());
    pod.containers
        .iter()
        .filter(move |container| match container.kind {
            ContainerKind::Init => true,
            ContainerKind::Sidecar => false,
            ContainerKind::Regular => main.is_none_or(|main| container.name == main),
        })
}
