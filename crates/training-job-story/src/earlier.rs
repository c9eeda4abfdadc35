//! Pods that were not observed, because they were replaced or deleted, as far as failures and events of the job describe
//! them.

use jiff::{SignedDuration, Timestamp};

use crate::story::{ContainerRun, Event, Failure, PodHistory, Replica};

/// The accuracy of times in events and failures.
const ACCURACY: SignedDuration = SignedDuration::from_secs(1);

/// Adds a pod for each failure of a replica that does not match the end of an observed pod.
pub(crate) fn add_earlier_pods(replicas: &mut Vec<Replica>, failures: &[&Failure], events: &[Event]) {
    for failure in failures {
        let (Some(role), Some(index), Some(at)) = (&failure.role, failure.index, failure.at) else {
            continue;
        };
        let replica = replica(replicas, role, index);
        if replica.pods.iter().any(|pod| is_end_of(pod, failure, at)) {
            continue;
        }
        let name = failure.pod.clone().unwrap_or_default();
        let pod = inferred(name, failure, at, events);
        let place = replica.pods.iter().position(|other| other.created_at > Some(at));
        replica.pods.insert(place.unwrap_or(replica.pods.len()), pod);
    }
}

/// Adds a pod for each creation in events of the job `job` that does not match a pod. Little is known about such a pod: it
/// was deleted before it was observed, as by the clean-up at the end of its job.
pub(crate) fn add_deleted_pods(replicas: &mut Vec<Replica>, job: &str, events: &[Event]) {
    let creations = events
        .iter()
        .filter(|event| event.reason == "SuccessfulCreatePod");
    for event in creations {
        for name in event.message.split([' ', ',']) {
            let own = name.strip_prefix(job).and_then(|rest| rest.strip_prefix('-'));
            let Some((role, index)) = own.and_then(|own| own.rsplit_once('-')) else {
                continue;
            };
            let Ok(index) = index.parse() else { continue };
            let replica = replica(replicas, role, index);
            for created in [event.first_at, event.at].into_iter().flatten() {
                if replica.pods.iter().any(|pod| may_be_created_at(pod, created)) {
                    continue;
                }
                let place = replica
                    .pods
                    .iter()
                    .position(|other| other.created_at > Some(created));
                // A pod of the same name can exist only after this one.
                let next = place.and_then(|place| replica.pods.get(place)?.created_at);
                let deleted = deletions(events, name).filter(|deleted| *deleted >= created);
                let pod = PodHistory {
                    name: name.to_owned(),
                    is_inferred: true,
                    created_at: Some(created),
                    gone_at: deleted.chain(next).min(),
                    ..PodHistory::default()
                };
                replica.pods.insert(place.unwrap_or(replica.pods.len()), pod);
            }
        }
    }
    replicas.retain(|replica| !replica.pods.is_empty());
}

/// Returns the replica, which is added if it is not there.
fn replica<'r>(replicas: &'r mut Vec<Replica>, role: &str, index: i32) -> &'r mut Replica {
    let place = replicas
        .iter()
        .position(|replica| replica.role == role && replica.index == index);
    let place = place.unwrap_or_else(|| {
        replicas.push(Replica {
            role: role.to_owned(),
            index,
            pods: Vec::new(),
        });
        replicas.len() - 1
    });
    // The place was found, or is the last one.
    &mut replicas[place]
}

/// Returns true if the event of a creation at this time may be that of the pod. An event may be written some time after
/// the creation.
fn may_be_created_at(pod: &PodHistory, at: Timestamp) -> bool {
    let is_before = |time: Timestamp| time.duration_since(at) <= ACCURACY;
    let is_after = |time: Timestamp| at.duration_since(time) <= ACCURACY;
    pod.created_at.is_none_or(is_before) && pod.gone_at.is_none_or(is_after)
}

/// Returns the times at which pods of this name were deleted.
fn deletions<'e>(events: &'e [Event], name: &'e str) -> impl Iterator<Item = Timestamp> + 'e {
    let deletions = events
        .iter()
        .filter(move |event| event.reason == "SuccessfulDeletePod" && names(event, name));
    deletions.flat_map(|event| [event.first_at, event.at].into_iter().flatten())
}

/// Returns true if the failure is that of a run of the pod, or of the pod itself.
fn is_end_of(pod: &PodHistory, failure: &Failure, at: Timestamp) -> bool {
    let is_near =
        |time: Option<Timestamp>| time.is_some_and(|time| time.duration_since(at).abs() <= ACCURACY);
    let by_run = pod
        .runs
        .iter()
        .any(|run| is_near(run.finished_at) && run.exit_code == failure.exit_code);
    let lived = pod.created_at.is_none_or(|created| created <= at);
    let by_pod = failure.exit_code.is_none() && lived && pod.gone_at.is_none_or(|gone| gone >= at);
    by_run || by_pod && !pod.is_inferred
}

fn inferred(name: String, failure: &Failure, at: Timestamp, events: &[Event]) -> PodHistory {
    let creations = events
        .iter()
        .filter(|event| event.reason == "SuccessfulCreatePod" && names(event, &name));
    let created_at = creations
        .flat_map(|event| [event.first_at, event.at].into_iter().flatten())
        .filter(|created| *created <= at)
        .max();
    let run = failure.exit_code.map(|exit_code| ContainerRun {
        container: failure.container.clone().unwrap_or_default(),
        is_init: false,
        started_at: created_at.unwrap_or(at),
        finished_at: Some(at),
        exit_code: Some(exit_code),
        signal: failure.signal,
        reason: failure.reason.clone(),
        message: failure.message.clone(),
    });
    PodHistory {
        name,
        is_inferred: true,
        node: failure.node.clone(),
        phase: "Failed".to_owned(),
        reason: failure.reason.clone(),
        created_at,
        gone_at: Some(at),
        runs: run.into_iter().collect(),
        ..PodHistory::default()
    }
}

/// Returns true if the message of an event contains the name as a word.
fn names(event: &Event, name: &str) -> bool {
    event.message.split([' ', ',']).any(|word| word == name)
}
