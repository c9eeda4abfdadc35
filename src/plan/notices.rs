//! Notices to the job's author about replicas that do not run, and pods that are not removed.

use jiff::{SignedDuration, Timestamp};

use super::observed::{ContainerKind, ContainerRecord, GATED, Phase, PodRecord};
use crate::api::CleanPodPolicy;
use crate::job::Role;
use crate::render::{self, accelerators::additions};

use super::draft::Draft;
use super::gang;
use super::pod_end::{end_of, main_name};
use super::reasons;
use super::types::{ChildKind, Deletion, PlannedEvent};

/// The time after its grace period when a pod that still exists is reported. Kubelets need some seconds to clean up.
const TERMINATION_SLACK: SignedDuration = SignedDuration::from_secs(30);

/// The reason of a disruption by the loss of the node.
const LOST_NODE: &str = "DeletionByTaintManager";

/// The time after which a pod with a node is reported if none of its containers has started.
const MAX_START_TIME: SignedDuration = SignedDuration::from_mins(5);

/// The time after which a pod is reported if no scheduler has processed it.
const MAX_UNPROCESSED_TIME: SignedDuration = SignedDuration::from_mins(1);

/// Adds one notice for each reason why pods wait, in the Go operator's words (`pkg/core/job.go`, RecordAbnormalPods).
/// The Go operator sends one for each pod in every reconcile.
pub(super) fn add(draft: &mut Draft<'_>) {
    let topology = &draft.job.topology;
    let mut notices: Vec<(PlannedEvent, usize)> = Vec::new();
    for replica in topology.all() {
        let name = replica.pod_name();
        let pod = draft.observed.pods.get(&name);
        let Some((reason, message)) = pod.filter(|p| !p.deleting).and_then(|p| waits(p)) else {
            continue;
        };
        if gang::speaks_for(draft, replica.role, reason) {
            continue;
        }
        match notices.iter_mut().find(|(notice, _)| notice.reason == reason) {
            Some((_, others)) => *others += 1,
            None => {
                let notice = PlannedEvent {
                    warning: true,
                    reason: reason.to_owned(),
                    message,
                };
                notices.push((notice, 0));
            }
        }
    }
    for (notice, others) in notices {
        push(draft, &notice.reason, notice.message, others);
    }
    add_slow(draft);
    add_without_node(draft);
    gang::notices(draft);
    let kept = kept_from_accelerators(draft);
    if !kept.is_empty() && starts(draft) {
        draft.plan.notices.push(PlannedEvent {
            warning: true,
            reason: reasons::ACCELERATOR_NOT_ADDED.to_owned(),
            message: kept.join("; "),
        });
    }
    if topology.roles.iter().any(|role| sets_restart_policy(role)) && starts(draft) {
        let notice = PlannedEvent {
            warning: true,
            reason: reasons::SET_POD_TEMPLATE_RESTART_POLICY.to_owned(),
            message: "Restart policy in pod template will be overwritten by restart policy in replica spec"
                .to_owned(),
        };
        draft.plan.notices.push(notice);
    }
}

/// Adds a notice for pods whose framework container has ended while another container still runs.
pub(super) fn add_lingering(draft: &mut Draft<'_>) {
    let seconds = draft.job.policy.sidecar_grace_seconds;
    let bound = match draft.job.policy.clean_pods {
        CleanPodPolicy::Running => format!(" for at most {seconds} s after the end of the job"),
        _ => String::new(),
    };
    let mut lingering = draft.job.topology.all().filter_map(|replica| {
        let main = main_name(replica.role)?;
        let pod = draft.observed.pods.get(&replica.pod_name())?;
        end_of(pod, replica.role).filter(|_| !pod.is_terminal() && !pod.deleting)?;
        let end = pod.container(main)?.ended.as_ref()?;
        let others = pod.containers.iter();
        let others = others.filter(|c| c.kind == ContainerKind::Regular && c.ended.is_none());
        let others: Vec<&str> = others.map(|container| container.name.as_str()).collect();
        let (name, code) = (&pod.name, end.exit_code);
        (!others.is_empty()).then(|| {
            format!(
                "container {main} of pod {name} ended with exit code {code}, which decides the result of the replica, but \
                 the pod still runs{bound} because of {}; unless it ends by itself, make it a native sidecar, which is an \
                 init container with restartPolicy Always",
                others.join(", ")
            )
        })
    });
    let Some(first) = lingering.next() else {
        return;
    };
    let others = lingering.count();
    push(draft, reasons::CONTAINERS_STILL_RUNNING, first, others);
}

/// Adds notices for pods that still exist after their grace period, and one for pods whose state is unknown. Deletes pods by
/// force if the operator's settings allow it and no finalizer holds them, because force removes no finalizer.
pub(super) fn add_stuck(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let force_after = draft.job.topology.settings.force_delete_after;
    let force_after = force_after.and_then(|after| SignedDuration::try_from(after).ok());
    let (mut stuck, mut held) = (Vec::new(), Vec::new());
    for pod in observed.pods.values() {
        let Some(times) = pod.deletion.filter(|_| pod.deleting) else {
            continue;
        };
        let forced = force_after.map(|after| times.due.checked_add(after));
        match forced.and_then(Result::ok) {
            _ if !pod.finalizers.is_empty() => {}
            Some(at) if at <= draft.now => draft.plan.delete.push(Deletion {
                force: true,
                ..Deletion::new(ChildKind::Pod, &pod.name, &pod.uid)
            }),
            Some(at) => draft.plan.requeue_at(at, "a pod that is deleted by force"),
            None => {}
        }
        let Ok(at) = times.due.checked_add(TERMINATION_SLACK) else {
            continue;
        };
        if at > draft.now {
            draft.plan.requeue_at(at, "a pod that is being deleted");
            continue;
        }
        if !pod.finalizers.is_empty() {
            held.push((pod, times.requested));
            continue;
        }
        stuck.push((pod, times.requested));
    }
    if let Some((pod, since)) = stuck.first() {
        let node = pod.node.as_deref().unwrap_or("unknown");
        let message = format!(
            "pod {} on node {node} has been terminating since {since}, longer than its grace period; if the node is down, \
             add the taint node.kubernetes.io/out-of-service to it, or delete the pod with --force --grace-period=0",
            pod.name
        );
        push(draft, reasons::PODS_STUCK_TERMINATING, message, stuck.len() - 1);
    }
    if let Some((pod, since)) = held.first() {
        let message = held_by_finalizers(pod, *since);
        push(draft, reasons::PODS_STUCK_TERMINATING, message, held.len() - 1);
    }
    add_stuck_objects(draft);
    let mut unknown = observed.pods.values();
    let mut unknown = unknown
        .by_ref()
        .filter(|pod| pod.phase == Phase::Unknown && !pod.deleting);
    if let Some(pod) = unknown.next() {
        let node = pod.node.as_deref().unwrap_or("unknown");
        let message = format!(
            "the state of pod {} is unknown: node {node} does not respond",
            pod.name
        );
        let others = unknown.count();
        push(draft, reasons::POD_STATE_UNKNOWN, message, others);
    }
}

/// Returns the message about a pod that its finalizers hold. If its node is down as well, the finalizers come first, because
/// nothing else removes the pod before.
fn held_by_finalizers(pod: &PodRecord, since: Timestamp) -> String {
    let (noun, pronoun) = match pod.finalizers.len() {
        1 => ("finalizer", "it"),
        _ => ("finalizers", "them"),
    };
    let mut message = format!(
        "pod {} has been terminating since {since}, because it is held by its {noun} {}: whoever set {pronoun} has to \
         remove {pronoun}",
        pod.name,
        pod.finalizers.join(", ")
    );
    let lost = pod.disruption.as_ref().is_some_and(|d| d.reason == LOST_NODE);
    if !pod.is_terminal() && (lost || pod.phase == Phase::Unknown) {
        let node = pod.node.as_deref().unwrap_or("unknown");
        message += &format!(
            "; node {node} does not respond either, and if it is down, add the taint \
             node.kubernetes.io/out-of-service to it"
        );
    }
    message
}

/// Adds a notice for pods that have had a node for long, whose containers have not started, and whose status gives no
/// reason.
fn add_slow(draft: &mut Draft<'_>) {
    let mut slow = Vec::new();
    for pod in draft.observed.pods.values().filter(|pod| !pod.deleting) {
        let Some(since) = pod.scheduled_at.filter(|_| is_silent(pod)) else {
            continue;
        };
        match since.checked_add(MAX_START_TIME) {
            Ok(at) if at > draft.now => draft.plan.requeue_at(at, "a pod that does not start"),
            Ok(_) => slow.push(pod),
            Err(_) => {}
        }
    }
    if let Some(pod) = slow.first() {
        let node = pod.node.as_deref().unwrap_or("unknown");
        let waiting = pod.containers.iter().find_map(|c| c.waiting.as_ref());
        let word = waiting.map_or("ContainerCreating", |(word, _)| word.as_str());
        let message = format!(
            "pod {name} was assigned to node {node} more than five minutes ago, but its containers have not started \
             ({word}); `kubectl describe pod {name}` shows the cause, which is often a volume that cannot be mounted",
            name = pod.name
        );
        push(draft, reasons::POD_NOT_STARTED, message, slow.len() - 1);
    }
}

/// Returns true if a pod with a node has not started and its status gives no reason. A container beside the
/// framework's may run.
fn is_silent(pod: &PodRecord) -> bool {
    let mut waiting = pod.containers.iter().filter_map(|c| c.waiting.as_ref());
    let has_reason = waiting.clone().any(|(_, why)| !why.is_empty());
    let waits = pod.containers.is_empty() || waiting.next().is_some();
    // An init container that runs is doing its work.
    let works =
        |c: &ContainerRecord| c.kind == ContainerKind::Init && c.waiting.is_none() && c.ended.is_none();
    waits && !has_reason && !pod.containers.iter().any(works)
}

/// Adds notices for pods that no scheduler has processed, and for pods that are held back by scheduling gates for
/// long.
fn add_without_node(draft: &mut Draft<'_>) {
    let (mut unseen, mut gated) = (Vec::new(), Vec::new());
    for replica in draft.job.topology.all() {
        let Some(pod) = draft
            .observed
            .pods
            .get(&replica.pod_name())
            .filter(|pod| !pod.deleting)
        else {
            continue;
        };
        let Some(since) = pod.without_node_since else {
            continue;
        };
        let (long, found) = match &pod.unscheduled {
            None => (MAX_UNPROCESSED_TIME, &mut unseen),
            Some((reason, _)) if reason == GATED => (MAX_START_TIME, &mut gated),
            Some(_) => continue,
        };
        match since.checked_add(long) {
            Ok(at) if at > draft.now => draft.plan.requeue_at(at, "a pod without a node"),
            Ok(_) => found.push(replica),
            Err(_) => {}
        }
    }
    if let Some(replica) = unseen.first() {
        let scheduler = render::pod(draft.job, replica, 0)
            .spec
            .and_then(|spec| spec.scheduler_name);
        let message = format!(
            "no scheduler has processed pod {} for more than one minute; check that the scheduler {} runs",
            replica.pod_name(),
            scheduler.as_deref().unwrap_or("default-scheduler")
        );
        push(draft, reasons::POD_NOT_SCHEDULED, message, unseen.len() - 1);
    }
    if let Some(replica) = gated.first() {
        let message = format!(
            "pod {} has been held back by its scheduling gates for more than five minutes",
            replica.pod_name()
        );
        push(draft, reasons::POD_GATED, message, gated.len() - 1);
    }
}

/// Adds a notice for services and other objects that still exist long after their deletion. No object can be created
/// under such a name.
fn add_stuck_objects(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let services = observed.services.values();
    let services = services.map(|service| (ChildKind::Service.noun(), &service.name, service.deletion));
    let objects = observed.objects.iter().flat_map(|(kind, records)| {
        let records = records.values();
        records.map(|record| (ChildKind::Object(*kind).noun(), &record.name, record.deletion))
    });
    let mut stuck = Vec::new();
    for (noun, name, deletion) in services.chain(objects) {
        let Some(times) = deletion else { continue };
        match times.due.checked_add(TERMINATION_SLACK) {
            Ok(at) if at > draft.now => draft.plan.requeue_at(at, "an object that is being deleted"),
            Ok(_) => stuck.push(format!("{noun} {name} (since {})", times.requested)),
            Err(_) => {}
        }
    }
    if let Some(first) = stuck.first() {
        let others = match stuck.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let message = format!(
            "a finalizer blocks the deletion of {first}{others}; no object can be created under that name until the \
             deletion completes"
        );
        push(draft, reasons::OBJECTS_STUCK_TERMINATING, message, 0);
    }
}

/// Adds a notice about one pod and the number of other pods with the same problem.
pub(super) fn push(draft: &mut Draft<'_>, reason: &str, mut message: String, others: usize) {
    message += &same_problem(others);
    draft.plan.notices.push(PlannedEvent {
        warning: true,
        reason: reason.to_owned(),
        message,
    });
}

fn same_problem(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => "; another pod has the same problem".to_owned(),
        _ => format!("; {others} other pods have the same problem"),
    }
}

/// Returns true if the role's pod template sets a restart policy of its own, which the role's policy replaces.
fn sets_restart_policy(role: &Role<'_>) -> bool {
    let own = role
        .template()
        .spec
        .as_ref()
        .and_then(|s| s.restart_policy.as_deref());
    own.is_some_and(|own| !own.is_empty())
}

/// Returns, by role, the fields that the job sets itself and that accelerators would add otherwise.
fn kept_from_accelerators(draft: &Draft<'_>) -> Vec<String> {
    let topology = &draft.job.topology;
    let accelerators = &topology.settings.accelerators;
    if accelerators.is_empty() {
        return Vec::new();
    }
    let roles = topology.roles.iter().filter(|role| role.replicas > 0);
    let kept = roles.flat_map(|role| {
        let spec = role.template().spec.iter();
        let kept = spec.flat_map(|spec| additions(spec, role.container, accelerators).kept);
        kept.map(|kept| format!("{}: {}", role.name(), kept.problem))
    });
    kept.collect()
}

/// Returns true if any pod of the job is missing or pending.
pub(super) fn starts(draft: &Draft<'_>) -> bool {
    let topology = &draft.job.topology;
    let mut names = topology.all().map(|r| r.pod_name());
    names.any(|name| {
        draft
            .observed
            .pods
            .get(&name)
            .is_none_or(|pod| pod.phase == Phase::Pending)
    })
}

/// Returns why a pod waits, if the cluster reports a message and not only a reason.
fn waits(pod: &PodRecord) -> Option<(&str, String)> {
    let containers = pod.containers.iter();
    let waiting = containers.filter_map(|c| Some((c, c.waiting.as_ref()?)));
    for (container, (reason, why)) in waiting {
        if !why.is_empty() {
            let message = format!(
                "Error pod {} container {} waiting message: {why}",
                pod.name, container.name
            );
            return Some((reason, message));
        }
    }
    // A gated pod is held back on purpose.
    let unscheduled = pod.unscheduled.as_ref();
    let (reason, why) = unscheduled.filter(|(reason, _)| reason != GATED)?;
    Some((reason, format!("Error pod {} condition message: {why}", pod.name)))
}
