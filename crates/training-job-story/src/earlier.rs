//! Replaced pods that were not observed, as far as failures and events of the job describe them.

use jiff::Timestamp;

use crate::deleted::{ACCURACY, Times};
use crate::story::{ContainerRun, Failure, PodHistory, Replica};

/// Adds a pod for each failure of a replica that does not match the end of an observed pod.
pub(crate) fn add_earlier_pods(replicas: &mut Vec<Replica>, failures: &[&Failure], created: &Times<'_>) {
    for failure in failures {
        let (Some(role), Some(index), Some(at)) = (&failure.role, failure.index, failure.at) else {
            continue;
        };
        let place = replicas
            .iter()
            .position(|replica| replica.role == *role && replica.index == index);
        let replica = match place.and_then(|place| replicas.get_mut(place)) {
            Some(replica) => replica,
            None => {
                replicas.push(Replica {
                    role: role.clone(),
                    index,
                    pods: Vec::new(),
                });
                match replicas.last_mut() {
                    Some(replica) => replica,
                    None => continue,
                }
            }
        };
        if replica.pods.iter().any(|pod| is_end_of(pod, failure, at)) {
            continue;
        }
        let name = failure.pod.clone().unwrap_or_default();
        let pod = inferred(name, failure, at, created);
        let place = replica.pods.iter().position(|other| other.created_at > Some(at));
        replica.pods.insert(place.unwrap_or(replica.pods.len()), pod);
    }
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

fn inferred(name: String, failure: &Failure, at: Timestamp, created: &Times<'_>) -> PodHistory {
    let created_at = created
        .get(name.as_str())
        .and_then(|times| times.range(..=at).next_back())
        .copied();
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
