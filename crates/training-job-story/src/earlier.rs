//! Replaced pods that were not observed, as far as failures and events of the job describe them.

use std::collections::BTreeSet;

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
        let created_at = creation(&replica.pods, created.get(name.as_str()), at);
        let pod = inferred(name, failure, at, created_at);
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

/// Returns the creation of the pod that failed at `at`, among the times at which pods of its name were created. Times are
/// in whole seconds: a pod that was created in the second of the failure is the successor, unless the failure of the pod
/// before it is known.
fn creation(known: &[PodHistory], created: Option<&BTreeSet<Timestamp>>, at: Timestamp) -> Option<Timestamp> {
    let created = created?;
    let before = created.range(..at).next_back();
    let has_failed = |time: &&Timestamp| known.iter().any(|pod| pod.created_at == Some(**time));
    let free = before.filter(|time| !has_failed(time));
    free.or_else(|| created.get(&at)).or(before).copied()
}

fn inferred(name: String, failure: &Failure, at: Timestamp, created_at: Option<Timestamp>) -> PodHistory {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the creations of the pods that failed at these seconds, if pods were created at those.
    #[track_caller]
    fn expect(created: &[i64], failed: &[i64], expected: &[Option<i64>]) {
        let at = |second: &i64| Timestamp::from_second(*second).unwrap();
        let created = Times::from([("job-worker-0", created.iter().map(at).collect())]);
        let failures = failed.iter().map(|second| {
            serde_json::from_value(serde_json::json!({
                "summary": "worker-0: exit 1", "reason": "Error", "message": "", "exitCode": 1,
                "role": "worker", "index": 0, "pod": "job-worker-0", "at": at(second),
            }))
        });
        let failures: Vec<Failure> = failures.collect::<Result<_, _>>().unwrap();
        let mut replicas = Vec::new();
        add_earlier_pods(&mut replicas, &failures.iter().collect::<Vec<_>>(), &created);
        let pods = replicas[0].pods.iter();
        let found: Vec<_> = pods.map(|pod| pod.created_at.map(Timestamp::as_second)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_failed_pod_is_the_one_created_before_its_failure() {
        expect(&[52, 60], &[54], &[Some(52)]);
        // Its successor was created in the second of the failure.
        expect(&[52, 54], &[54], &[Some(52)]);
        // The second pod failed in the second of its creation.
        expect(&[50, 54], &[51, 54], &[Some(50), Some(54)]);
        expect(&[54], &[54], &[Some(54)]);
        expect(&[55], &[54], &[None]);
    }
}
