//! Pods that were deleted before they were observed, as far as events of the job name them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::story::{Event, PodHistory, Replica};

/// The accuracy of times in events and failures.
pub(crate) const ACCURACY: SignedDuration = SignedDuration::from_secs(1);

/// The times of events with one reason, by the pods that they name.
pub(crate) type Times<'a> = BTreeMap<&'a str, BTreeSet<Timestamp>>;

/// Adds the pods whose creation and deletion events name, and that no observation or failure describes. An event that
/// occurred several times has the first and the latest time only, so pods between them may be missing.
pub(crate) fn add_deleted_pods(
    replicas: &mut Vec<Replica>,
    job: &str,
    created: &Times<'_>,
    deleted: &Times<'_>,
) {
    let known: BTreeSet<_> = replicas
        .iter()
        .map(|replica| (replica.role.clone(), replica.index))
        .collect();
    let named = created.keys().filter_map(|pod| replica_of(pod, job));
    let missing = named.filter(|(role, index)| !known.contains(&(role.clone(), *index)));
    replicas.extend(missing.map(|(role, index)| Replica {
        role,
        index,
        pods: Vec::new(),
    }));
    for replica in replicas {
        let name = format!("{job}-{}-{}", replica.role, replica.index);
        let none = BTreeSet::new();
        let creations = created.get(name.as_str()).unwrap_or(&none);
        let deletions = deleted.get(name.as_str()).unwrap_or(&none);
        for at in creations {
            let is_known = |pod: &PodHistory| {
                pod.created_at
                    .is_some_and(|created| created.duration_since(*at).abs() <= ACCURACY)
            };
            // A pod without its deletion may be one that a bound of the recorder left out.
            let Some(gone) = deletions.range(*at..).next() else {
                continue;
            };
            let followers = replica.pods.iter().filter_map(|pod| pod.created_at);
            let next = followers.filter(|created| created > at).min();
            if replica.pods.iter().any(is_known) || next.is_some_and(|next| next < *gone) {
                continue;
            }
            let pod = PodHistory {
                name: name.clone(),
                is_inferred: true,
                created_at: Some(*at),
                gone_at: Some(*gone),
                ..PodHistory::default()
            };
            let place = replica.pods.iter().position(|other| other.created_at > Some(*at));
            replica.pods.insert(place.unwrap_or(replica.pods.len()), pod);
        }
    }
}

/// Returns the role and the index in the name of a pod of the job.
fn replica_of(pod: &str, job: &str) -> Option<(String, i32)> {
    let own = pod.strip_prefix(job)?.strip_prefix('-')?;
    let (role, index) = own.rsplit_once('-')?;
    Some((role.to_owned(), index.parse().ok()?))
}

/// Returns the times of the events with a reason, by the pods that they name.
pub(crate) fn times<'a>(events: &'a [Event], reason: &str) -> Times<'a> {
    let mut times = Times::new();
    for event in events.iter().filter(|event| event.reason == reason) {
        for name in event.message.split([' ', ',']).filter(|word| !word.is_empty()) {
            let of_name = times.entry(name).or_default();
            of_name.extend([event.first_at, event.at].into_iter().flatten());
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn event(reason: &str, message: &str, times: [i64; 2]) -> Event {
        Event {
            first_at: Some(at(times[0])),
            at: Some(at(times[1])),
            type_: "Normal".to_owned(),
            reason: reason.to_owned(),
            object: "MXJob train".to_owned(),
            message: message.to_owned(),
            count: 2,
        }
    }

    fn observed(created: i64) -> PodHistory {
        PodHistory {
            created_at: Some(at(created)),
            ..PodHistory::default()
        }
    }

    /// Returns the creations and deletions of the inferred pods of a replica with these pods.
    fn inferred(role: &str, pods: Vec<PodHistory>) -> Vec<(i64, i64)> {
        let names = "train-scheduler-0, train-worker-0";
        let events = [
            event("SuccessfulCreatePod", &format!("Created pods: {names}"), [0, 30]),
            event("SuccessfulDeletePod", &format!("Deleted pods: {names}"), [10, 20]),
            event("SuccessfulDeletePod", "Deleted pod: train-scheduler-0", [40, 40]),
        ];
        let mut replicas = vec![Replica {
            role: role.to_owned(),
            index: 0,
            pods,
        }];
        let [created, deleted] =
            ["SuccessfulCreatePod", "SuccessfulDeletePod"].map(|reason| times(&events, reason));
        add_deleted_pods(&mut replicas, "train", &created, &deleted);
        let pods = replicas[0].pods.iter().filter(|pod| pod.is_inferred);
        let seconds = |time: Option<Timestamp>| time.unwrap().duration_since(at(0)).as_secs();
        pods.map(|pod| (seconds(pod.created_at), seconds(pod.gone_at)))
            .collect()
    }

    #[test]
    fn a_replica_whose_pods_were_deleted_has_those_of_events() {
        assert_eq!(inferred("scheduler", Vec::new()), [(0, 10), (30, 40)]);
        assert_eq!(inferred("scheduler", vec![observed(30)]), [(0, 10)]);
        // The second pod of the worker was not deleted.
        assert_eq!(inferred("worker", vec![observed(31)]), [(0, 10)]);
        // A pod that followed before the deletion shows that another pod was deleted.
        assert_eq!(inferred("worker", vec![observed(5)]), []);
        assert_eq!(inferred("server", Vec::new()), []);
    }
}
