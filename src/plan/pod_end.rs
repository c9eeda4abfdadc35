//! Determines how a pod's training ended. The framework's container decides.

use crate::job::Role;

use super::observed::{ContainerKind, ContainerRecord, Phase, PodRecord, Termination};

/// The end of a replica's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodEnd {
    Good,
    Bad,
    /// The pod was deleted or disrupted before the end, so the exit code has no meaning.
    TakenAway,
}

/// Returns the name of the framework's container in the pods of a role.
pub(super) fn main_name<'r>(role: &'r Role<'_>) -> Option<&'r str> {
    role.main_container().map(|container| container.name.as_str())
}

/// Returns how the replica of a pod ended, or None if it has not ended.
///
/// The replica has not ended while the framework's container runs or its kubelet restarts it. Once this container has
/// ended, no other container matters. A pod that failed for a reason of its own, such as its deadline, has not done its
/// work even if the container ended with 0. A pod without the framework's container is judged by its phase. A replica
/// that is always replaced has failed whatever its exit code.
pub(super) fn end_of(pod: &PodRecord, role: &Role<'_>) -> Option<PodEnd> {
    let main = main_name(role).and_then(|name| pod.container(name));
    let end = main.and_then(|container| container.ended.as_ref());
    let is_good = |is_good: bool| is_good && !role.definition.always_replaced;
    let by_code = |end: &Termination| is_good(end.exit_code == 0);
    let good = match (end, pod.phase) {
        (Some(_), Phase::Failed) if pod.reason.is_some() => false,
        (Some(end), Phase::Succeeded | Phase::Failed) => by_code(end),
        // The phase is Pending as long as any other container cannot start.
        (Some(end), _) if !main.is_some_and(|main| pod.restarts(main)) => by_code(end),
        (None, Phase::Succeeded) => is_good(true),
        (None, Phase::Failed) => false,
        _ => return None,
    };
    Some(match good {
        _ if pod.was_taken_away(end) => PodEnd::TakenAway,
        true => PodEnd::Good,
        false => PodEnd::Bad,
    })
}

/// Returns true if the kubelet ends the pod without a request, because only native sidecars still run.
pub(super) fn ends_by_itself(pod: &PodRecord) -> bool {
    let regular = pod.containers.iter();
    let mut regular = regular
        .filter(|container| container.kind == ContainerKind::Regular)
        .peekable();
    let has_ended = |container: &ContainerRecord| container.ended.is_some() && !pod.restarts(container);
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
