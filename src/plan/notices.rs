//! Notices to the job's author about replicas that do not run, and pods that are not removed.

use jiff::{SignedDuration, Timestamp};

use super::observed::{ContainerKind, ContainerRecord, GATED, Observed, Phase, PodRecord};
use crate::api::CleanPodPolicy;
use crate::job::Role;
use crate::render::{self, accelerators::additions};
use crate::validate::ValidJob;

use super::facts::Facts;
use super::pod_end::{end_of, main_name};
use super::survey::{ObservedReplica, Survey};
use super::types::{ChildKind, Deletion, Plan};
use super::{gang, reasons};

/// The time after its grace period when a pod that still exists is reported. Kubelets need some seconds to clean up.
const TERMINATION_SLACK: SignedDuration = SignedDuration::from_secs(30);

/// The reason of a disruption by the loss of the node.
const LOST_NODE: &str = "DeletionByTaintManager";

/// The time after which a pod with a node is reported if none of its containers has started.
const MAX_START_TIME: SignedDuration = SignedDuration::from_mins(5);

/// The time after which a pod is reported if no scheduler has processed it.
const MAX_UNPROCESSED_TIME: SignedDuration = SignedDuration::from_mins(1);

/// Returns one notice for each reason why pods wait, in the Go operator's words (`pkg/core/job.go`, RecordAbnormalPods).
/// The Go operator sends one for each pod in every reconcile.
pub(super) fn waiting(facts: &Facts<'_>, survey: &Survey<'_>) -> Plan {
    let (job, observed, now) = (facts.job, facts.observed, facts.now);
    let scheduler = job.topology.settings.gang_scheduler.as_ref();
    let mut found: Vec<(&str, String, usize)> = Vec::new();
    for ObservedReplica { replica, pod, .. } in survey.replicas() {
        let Some((reason, message)) = pod.filter(|p| !p.deleting).and_then(waits) else {
            continue;
        };
        if gang::speaks_for(scheduler, replica.role, reason) {
            continue;
        }
        match found.iter_mut().find(|(earlier, ..)| *earlier == reason) {
            Some((.., pods)) => *pods += 1,
            None => found.push((reason, message, 1)),
        }
    }
    let found = found.into_iter();
    let found = found.map(|(reason, message, pods)| Plan::notices(reason, message, pods));
    let gangs = gang::notices(facts, survey);
    let starting = survey.is_starting().then(|| ignored_fields(job));
    found
        .fold(Plan::default(), Plan::and)
        .and(slow(observed, now))
        .and(without_node(job, survey, now))
        .and(gangs)
        .and(starting.unwrap_or_default())
}

/// Returns notices for fields of the job that have no effect, and for those that keep an accelerator's addition out.
fn ignored_fields(job: &ValidJob<'_>) -> Plan {
    let kept = kept_from_accelerators(job);
    let kept = (!kept.is_empty()).then(|| Plan::notice(reasons::ACCELERATOR_NOT_ADDED, kept.join("; ")));
    let kept = kept.unwrap_or_default();
    if !job.topology.roles.iter().any(|role| sets_restart_policy(role)) {
        return kept;
    }
    let message = "Restart policy in pod template will be overwritten by restart policy in replica spec";
    kept.and(Plan::notice(
        reasons::SET_POD_TEMPLATE_RESTART_POLICY,
        message.to_owned(),
    ))
}

/// Returns a notice for pods whose framework container has ended while another container still runs.
pub(super) fn lingering(job: &ValidJob<'_>, survey: &Survey<'_>) -> Plan {
    let seconds = job.policy.sidecar_grace_seconds;
    let bound = match job.policy.clean_pods {
        CleanPodPolicy::Running => format!(" for at most {seconds} s after the end of the job"),
        _ => String::new(),
    };
    let mut lingering = survey.replicas().filter_map(|ObservedReplica { replica, pod, .. }| {
        let (main, pod) = (main_name(replica.role)?, (*pod)?);
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
    match lingering.next() {
        Some(first) => Plan::notices(reasons::CONTAINERS_STILL_RUNNING, first, 1 + lingering.count()),
        None => Plan::default(),
    }
}

/// Returns notices for pods that still exist after their grace period, and one for pods whose state is unknown. If the
/// operator's settings allow it, pods are deleted by force, but none that a finalizer holds, because force removes no
/// finalizer.
pub(super) fn stuck(facts: &Facts<'_>) -> Plan {
    let (job, observed, now) = (facts.job, facts.observed, facts.now);
    let force_after = job.topology.settings.force_delete_after;
    let force_after = force_after.and_then(|after| SignedDuration::try_from(after).ok());
    let (mut plan, mut stuck, mut held) = (Plan::default(), Vec::new(), Vec::new());
    for pod in observed.pods.values() {
        let Some(times) = pod.deletion.filter(|_| pod.deleting) else {
            continue;
        };
        let forced = force_after.map(|after| times.due.checked_add(after));
        match forced.and_then(Result::ok) {
            _ if !pod.finalizers.is_empty() => {}
            Some(at) if at <= now => plan.delete.push(Deletion {
                force: true,
                ..pod.planned_deletion()
            }),
            Some(at) => plan.requeue_at(at, "a pod that is deleted by force"),
            None => {}
        }
        match times.due.checked_add(TERMINATION_SLACK) {
            Ok(at) if at > now => plan.requeue_at(at, "a pod that is being deleted"),
            Ok(_) if pod.finalizers.is_empty() => stuck.push((pod, times.requested)),
            Ok(_) => held.push((pod, times.requested)),
            Err(_) => {}
        }
    }
    if let Some((pod, since)) = stuck.first() {
        let node = pod.node.as_deref().unwrap_or("unknown");
        let message = format!(
            "pod {} on node {node} has been terminating since {since}, longer than its grace period; if the node is down, \
             add the taint node.kubernetes.io/out-of-service to it, or delete the pod with --force --grace-period=0",
            pod.name
        );
        plan = plan.and(Plan::notices(
            reasons::PODS_STUCK_TERMINATING,
            message,
            stuck.len(),
        ));
    }
    if let Some((pod, since)) = held.first() {
        let message = held_by_finalizers(pod, *since);
        plan = plan.and(Plan::notices(
            reasons::PODS_STUCK_TERMINATING,
            message,
            held.len(),
        ));
    }
    plan.and(stuck_objects(observed, now)).and(unknown(observed))
}

/// Returns a notice for pods whose state is unknown.
fn unknown(observed: &Observed) -> Plan {
    let pods = observed.pods.values();
    let mut unknown = pods.filter(|pod| pod.phase == Phase::Unknown && !pod.deleting);
    let Some(pod) = unknown.next() else {
        return Plan::default();
    };
    let node = pod.node.as_deref().unwrap_or("unknown");
    let message = format!(
        "the state of pod {} is unknown: node {node} does not respond",
        pod.name
    );
    Plan::notices(reasons::POD_STATE_UNKNOWN, message, 1 + unknown.count())
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

/// Returns a notice for pods that have had a node for long, whose containers have not started, and whose status gives no
/// reason.
fn slow(observed: &Observed, now: Timestamp) -> Plan {
    let (mut plan, mut slow) = (Plan::default(), Vec::new());
    for pod in observed.pods.values().filter(|pod| !pod.deleting) {
        let Some(since) = pod.scheduled_at.filter(|_| is_silent(pod)) else {
            continue;
        };
        match since.checked_add(MAX_START_TIME) {
            Ok(at) if at > now => plan.requeue_at(at, "a pod that does not start"),
            Ok(_) => slow.push(pod),
            Err(_) => {}
        }
    }
    let Some(pod) = slow.first() else {
        return plan;
    };
    let node = pod.node.as_deref().unwrap_or("unknown");
    let waiting = pod.containers.iter().find_map(|c| c.waiting.as_ref());
    let word = waiting.map_or("ContainerCreating", |(word, _)| word.as_str());
    let message = format!(
        "pod {name} was assigned to node {node} more than five minutes ago, but its containers have not started \
         ({word}); `kubectl describe pod {name}` shows the cause, which is often a volume that cannot be mounted",
        name = pod.name
    );
    plan.and(Plan::notices(reasons::POD_NOT_STARTED, message, slow.len()))
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

/// Returns notices for pods that no scheduler has processed, and for pods that are held back by scheduling gates for
/// long.
fn without_node(job: &ValidJob<'_>, survey: &Survey<'_>, now: Timestamp) -> Plan {
    let (mut plan, mut unseen, mut gated) = (Plan::default(), Vec::new(), Vec::new());
    for of_replica in survey.replicas() {
        let Some(pod) = of_replica.pod.filter(|pod| !pod.deleting) else {
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
            Ok(at) if at > now => plan.requeue_at(at, "a pod without a node"),
            Ok(_) => found.push(of_replica),
            Err(_) => {}
        }
    }
    if let Some(first) = unseen.first() {
        let spec = render::pod(job, &first.replica, 0).spec;
        let scheduler = spec.and_then(|spec| spec.scheduler_name);
        let message = format!(
            "no scheduler has processed pod {} for more than one minute; check that the scheduler {} runs",
            first.name,
            scheduler.as_deref().unwrap_or("default-scheduler")
        );
        plan = plan.and(Plan::notices(reasons::POD_NOT_SCHEDULED, message, unseen.len()));
    }
    if let Some(first) = gated.first() {
        let message = format!(
            "pod {} has been held back by its scheduling gates for more than five minutes",
            first.name
        );
        plan = plan.and(Plan::notices(reasons::POD_GATED, message, gated.len()));
    }
    plan
}

/// Returns a notice for services and other objects that still exist long after their deletion. No object can be created
/// under such a name.
fn stuck_objects(observed: &Observed, now: Timestamp) -> Plan {
    let services = observed.services.values();
    let services = services.map(|service| (ChildKind::Service.noun(), &service.name, service.deletion));
    let objects = observed.objects.iter().flat_map(|(kind, records)| {
        let records = records.values();
        records.map(|record| (ChildKind::Object(*kind).noun(), &record.name, record.deletion))
    });
    let (mut plan, mut stuck) = (Plan::default(), Vec::new());
    for (noun, name, deletion) in services.chain(objects) {
        let Some(times) = deletion else { continue };
        match times.due.checked_add(TERMINATION_SLACK) {
            Ok(at) if at > now => plan.requeue_at(at, "an object that is being deleted"),
            Ok(_) => stuck.push(format!("{noun} {name} (since {})", times.requested)),
            Err(_) => {}
        }
    }
    let Some(first) = stuck.first() else {
        return plan;
    };
    let others = match stuck.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let message = format!(
        "a finalizer blocks the deletion of {first}{others}; no object can be created under that name until the deletion \
         completes"
    );
    plan.and(Plan::notice(reasons::OBJECTS_STUCK_TERMINATING, message))
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
fn kept_from_accelerators(job: &ValidJob<'_>) -> Vec<String> {
    let topology = &job.topology;
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
