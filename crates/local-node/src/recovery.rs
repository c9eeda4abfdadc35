//! Pods of this node that the agent finds when it starts (pure).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::container::{ContainerRecord, RunState, Termination};

/// The history of a pod before this agent found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundPod {
    /// The pod has not been started.
    New,
    /// The pod was started by an agent that is gone, and its processes are gone too.
    Lost,
    Ended,
}

/// Derives a pod's history from its status.
pub(super) fn classify(pod: &Pod) -> FoundPod {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ran = |status: &ContainerStatus| {
        let running = |state: &k8s_openapi::api::core::v1::ContainerState| {
            state.running.is_some() || state.terminated.is_some()
        };
        status.state.as_ref().is_some_and(running) || status.last_state.as_ref().is_some_and(running)
    };
    match phase {
        Some("Succeeded" | "Failed") => FoundPod::Ended,
        Some("Running") => FoundPod::Lost,
        _ if statuses(pod).any(ran) => FoundPod::Lost,
        _ => FoundPod::New,
    }
}

/// Ends every container that has no recorded end.
pub(super) fn mark_lost(pod: &Pod, containers: &mut [ContainerRecord], now: Timestamp) {
    for record in containers {
        let known = statuses(pod).find(|status| status.name == record.name);
        record.restarts = known.map_or(0, |status| status.restart_count);
        let ended = known
            .and_then(|status| status.state.as_ref())
            .and_then(|state| state.terminated.as_ref());
        record.state = RunState::Terminated(match ended {
            Some(ended) => Termination {
                exit_code: ended.exit_code,
                signal: ended.signal,
                reason: ended.reason.clone().unwrap_or_default(),
                message: ended.message.clone(),
                started: ended.started_at.as_ref().map(|time| time.0),
                finished: ended.finished_at.as_ref().map_or(now, |time| time.0),
                pid: ended
                    .container_id
                    .as_deref()
                    .and_then(|id| id.strip_prefix("local://")?.parse().ok()),
            },
            None => Termination {
                exit_code: 137,
                signal: None,
                reason: "ContainerStatusUnknown".to_owned(),
                message: Some(
                    "the node agent that ran the container has ended, and its processes with it".to_owned(),
                ),
                started: None,
                finished: now,
                pid: None,
            },
        });
    }
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| {
        status
            .init_container_statuses
            .iter()
            .flatten()
            .chain(status.container_statuses.iter().flatten())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::containers;
    use serde_json::{Value, json};

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({
            "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_that_has_run_before_is_lost_or_has_ended() {
        let waiting = json!([{"name": "a", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "x"}}}]);
        let ran = json!([{"name": "a", "ready": false, "restartCount": 0, "image": "", "imageID": "",
            "state": {"running": {}}}]);
        for (status, expected) in [
            (json!({}), FoundPod::New),
            (json!({"phase": "Pending"}), FoundPod::New),
            (
                json!({"phase": "Pending", "containerStatuses": waiting}),
                FoundPod::New,
            ),
            (
                json!({"phase": "Pending", "initContainerStatuses": ran}),
                FoundPod::Lost,
            ),
            (json!({"phase": "Running"}), FoundPod::Lost),
            (
                json!({"phase": "Succeeded", "containerStatuses": ran}),
                FoundPod::Ended,
            ),
            (json!({"phase": "Failed"}), FoundPod::Ended),
        ] {
            assert_eq!(classify(&pod(status.clone())), expected, "{status}");
        }
    }

    #[test]
    fn containers_that_had_ended_keep_their_exit_codes() {
        let pod = pod(json!({"phase": "Running", "containerStatuses": [
            {"name": "a", "ready": false, "restartCount": 2, "image": "", "imageID": "",
                "state": {"terminated": {"exitCode": 0, "reason": "Completed", "containerID": "local://7"}}},
            {"name": "b", "ready": true, "restartCount": 1, "image": "", "imageID": "", "state": {"running": {}}},
        ]}));
        let mut records = containers(&pod);
        mark_lost(&pod, &mut records, Timestamp::UNIX_EPOCH);
        let ends: Vec<_> = records
            .iter()
            .map(|record| match &record.state {
                RunState::Terminated(ended) => {
                    (record.restarts, ended.exit_code, ended.reason.as_str(), ended.pid)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            ends,
            [
                (2, 0, "Completed", Some(7)),
                (1, 137, "ContainerStatusUnknown", None)
            ]
        );
    }
}
