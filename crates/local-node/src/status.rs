//! Computes a pod's status from the states of its containers (pure).

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::config::STOPPED;
use super::container::{ContainerRecord, ContainerType, RunState, Termination};
use super::env_values::HOST_IP;
use super::lifecycle::{FinalPhase, initialized};

/// The conditions that a kubelet owns. Other conditions of a pod have other owners and are not changed.
const OWN_CONDITIONS: [&str; 4] = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];

/// Returns true if the pod was stopped: see [`StopCause::is_a_stop`].
pub(super) fn was_stopped(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == STOPPED && condition.status == "True")
}

/// The reason that the agent ends a pod's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopCause {
    Deleted,
    NodeShutdown,
    /// The pod's `activeDeadlineSeconds` are over.
    Deadline,
    /// The agent has lost a container's run.
    Lost,
}

impl StopCause {
    /// Returns true if the end was requested from outside. The pod has not failed by itself then.
    fn is_a_stop(self) -> bool {
        matches!(self, Self::Deleted | Self::NodeShutdown)
    }

    /// Returns the reason and the message in the status of a pod that ended because of this.
    fn reason_and_message(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Deadline => Some((
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            )),
            Self::NodeShutdown => Some((
                "Terminated",
                "Pod was terminated in response to imminent node shutdown.",
            )),
            Self::Deleted | Self::Lost => None,
        }
    }
}

/// The observed state of a pod, from which its status is computed.
pub(super) struct Observed<'a> {
    pub(super) containers: &'a [ContainerRecord],
    pub(super) address: Ipv4Addr,
    pub(super) start_time: Timestamp,
    pub(super) final_phase: Option<FinalPhase>,
    /// The reason that the pod's processes were ended, if they were.
    pub(super) cause: Option<StopCause>,
    /// The last reported conditions. Their transition times are kept where the status is unchanged.
    pub(super) previous: &'a [PodCondition],
    pub(super) now: Timestamp,
}

/// Returns the status to report. Its phase is final if and only if `final_phase` is set.
pub(super) fn status(pod: &Pod, observed: &Observed<'_>) -> PodStatus {
    let of = |init: bool| {
        let chosen = observed
            .containers
            .iter()
            .filter(|record| (record.type_ != ContainerType::Main) == init);
        let statuses: Vec<_> = chosen.map(container_status).collect();
        (!statuses.is_empty()).then_some(statuses)
    };
    let (reason, message) = observed
        .cause
        .filter(|_| observed.final_phase == Some(FinalPhase::Failed))
        .and_then(StopCause::reason_and_message)
        .unzip();
    let address = observed.address.to_string();
    PodStatus {
        phase: Some(phase(observed).to_owned()),
        conditions: Some(conditions(pod, observed)),
        reason: reason.map(str::to_owned),
        message: message.map(str::to_owned),
        host_ip: Some(HOST_IP.to_string()),
        host_ips: Some(vec![HostIP {
            ip: HOST_IP.to_string(),
        }]),
        pod_ips: Some(vec![PodIP { ip: address.clone() }]),
        pod_ip: Some(address),
        start_time: Some(Time(observed.start_time)),
        init_container_statuses: of(true),
        container_statuses: of(false),
        ..PodStatus::default()
    }
}

fn phase(observed: &Observed<'_>) -> &'static str {
    match observed.final_phase {
        Some(FinalPhase::Succeeded) => return "Succeeded",
        Some(FinalPhase::Failed) => return "Failed",
        None => {}
    }
    let mut mains = observed
        .containers
        .iter()
        .filter(|record| record.type_ == ContainerType::Main);
    let never_ran =
        |record: &ContainerRecord| matches!(record.state, RunState::Waiting { .. }) && record.last.is_none();
    if !initialized(observed.containers) || mains.any(never_ran) {
        "Pending"
    } else {
        "Running"
    }
}

fn container_status(record: &ContainerRecord) -> ContainerStatus {
    let id = match &record.state {
        RunState::Running { pid, .. } => Some(*pid),
        RunState::Terminated(ended) => ended.pid,
        RunState::Waiting { .. } => record.last.as_ref().and_then(|ended| ended.pid),
    };
    let state = match &record.state {
        RunState::Waiting { reason, message, .. } => ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message: message.clone(),
            }),
            ..ContainerState::default()
        },
        RunState::Running { started, .. } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(Time(*started)),
            }),
            ..ContainerState::default()
        },
        RunState::Terminated(ended) => terminated(ended),
    };
    let init_done = record.type_ == ContainerType::Init
        && matches!(&record.state, RunState::Terminated(ended) if ended.exit_code == 0);
    ContainerStatus {
        name: record.name.clone(),
        image: record.image.clone(),
        image_id: String::new(),
        container_id: id.map(container_id),
        // There are no probes. A running container is ready; an init container is ready when it has succeeded.
        ready: (record.is_running() && record.type_ != ContainerType::Init) || init_done,
        started: Some(record.is_running()),
        restart_count: record.restarts,
        state: Some(state),
        last_state: record.last.as_ref().map(terminated),
        ..ContainerStatus::default()
    }
}

fn terminated(ended: &Termination) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: ended.exit_code,
            signal: ended.signal,
            reason: Some(ended.reason.clone()),
            message: ended.message.clone(),
            started_at: ended.started.map(Time),
            finished_at: Some(Time(ended.finished)),
            container_id: ended.pid.map(container_id),
        }),
        ..ContainerState::default()
    }
}

fn container_id(pid: u32) -> String {
    format!("local://{pid}")
}

fn conditions(pod: &Pod, observed: &Observed<'_>) -> Vec<PodCondition> {
    let unready: Vec<&str> = observed
        .containers
        .iter()
        .filter(|record| record.type_ != ContainerType::Init && !record.is_running())
        .map(|record| record.name.as_str())
        .collect();
    let not_ready = || match observed.final_phase {
        Some(FinalPhase::Succeeded) => Some(("PodCompleted", String::new())),
        Some(FinalPhase::Failed) => Some(("PodFailed", String::new())),
        None if unready.is_empty() => None,
        None => Some((
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        )),
    };
    let not_initialized = (!initialized(observed.containers)).then(|| {
        (
            "ContainersNotInitialized",
            "init containers have not all succeeded".to_owned(),
        )
    });
    let own = OWN_CONDITIONS
        .iter()
        .zip([None, not_initialized, not_ready(), not_ready()]);
    let own = own.map(|(type_, problem)| condition(type_, problem.is_none(), problem, observed));
    // A pod that succeeds although it was stopped has done its work.
    let stopped =
        observed.final_phase == Some(FinalPhase::Failed) && observed.cause.is_some_and(StopCause::is_a_stop);
    let stopped = stopped.then(|| condition(STOPPED, true, None, observed));
    let others = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let others = others
        .filter(|other| other.type_ != STOPPED && !OWN_CONDITIONS.contains(&other.type_.as_str()))
        .cloned();
    own.chain(others).chain(stopped).collect()
}

/// Returns a condition with the time since which it has this status.
fn condition(
    type_: &str,
    is_true: bool,
    reason: Option<(&str, String)>,
    observed: &Observed<'_>,
) -> PodCondition {
    let status = if is_true { "True" } else { "False" };
    let before = observed
        .previous
        .iter()
        .find(|before| before.type_ == type_ && before.status == status);
    let since = before.and_then(|before| before.last_transition_time.clone());
    let (reason, message) = reason.unzip();
    PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        message: message.filter(|message| !message.is_empty()),
        last_transition_time: Some(since.unwrap_or(Time(observed.now))),
        ..PodCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RestartBackoff;
    use crate::container::{Start, containers};
    use serde_json::{Value, json};
    use tokio::time::Instant;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "spec": {
                "initContainers": [{"name": "init", "image": "a"}],
                "containers": [{"name": "main", "image": "b"}, {"name": "side", "image": "b"}],
            },
            "status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "Ready", "status": "?"}]},
        }))
        .unwrap()
    }

    fn ended(exit_code: i32) -> Termination {
        Termination {
            exit_code,
            signal: None,
            reason: if exit_code == 0 { "Completed" } else { "Error" }.into(),
            message: (exit_code != 0).then(|| "boom".into()),
            started: Some(Timestamp::UNIX_EPOCH),
            finished: Timestamp::UNIX_EPOCH,
            pid: Some(7),
        }
    }

    fn running() -> RunState {
        RunState::Running {
            pid: 7,
            started: Timestamp::UNIX_EPOCH,
        }
    }

    fn report(
        states: [RunState; 3],
        final_phase: Option<FinalPhase>,
        previous: &[PodCondition],
        now: i64,
    ) -> PodStatus {
        let pod = pod();
        let mut records = containers(&pod);
        for (record, state) in records.iter_mut().zip(states) {
            record.state = state;
        }
        let observed = Observed {
            containers: &records,
            address: Ipv4Addr::new(127, 64, 0, 2),
            start_time: Timestamp::UNIX_EPOCH,
            final_phase,
            cause: Some(StopCause::Deadline),
            previous,
            now: Timestamp::from_second(now).unwrap(),
        };
        status(&pod, &observed)
    }

    fn truths(status: &PodStatus) -> Vec<String> {
        status
            .conditions
            .iter()
            .flatten()
            .map(|c| format!("{}={}", c.type_, c.status))
            .collect()
    }

    #[test]
    fn phases_and_conditions() {
        let waiting = || RunState::Waiting {
            reason: "PodInitializing",
            message: None,
            start: Start::Now,
        };
        let done = |code| RunState::Terminated(ended(code));
        for (states, final_phase, phase, initialized, ready) in [
            (
                [running(), waiting(), waiting()],
                None,
                "Pending",
                "False",
                "False",
            ),
            ([done(0), waiting(), running()], None, "Pending", "True", "False"),
            ([done(0), running(), running()], None, "Running", "True", "True"),
            ([done(0), running(), done(0)], None, "Running", "True", "False"),
            (
                [done(0), done(0), done(0)],
                Some(FinalPhase::Succeeded),
                "Succeeded",
                "True",
                "False",
            ),
            (
                [done(0), done(1), done(0)],
                Some(FinalPhase::Failed),
                "Failed",
                "True",
                "False",
            ),
            (
                [done(1), waiting(), waiting()],
                Some(FinalPhase::Failed),
                "Failed",
                "False",
                "False",
            ),
        ] {
            let status = report(states.clone(), final_phase, &[], 5);
            assert_eq!(status.phase.as_deref(), Some(phase), "{states:?}");
            let expected = [
                "PodScheduled=True".to_owned(),
                format!("Initialized={initialized}"),
                format!("ContainersReady={ready}"),
                format!("Ready={ready}"),
                "DisruptionTarget=True".to_owned(),
            ];
            assert_eq!(truths(&status), expected, "{states:?}");
            assert_eq!(status.reason.is_some(), final_phase == Some(FinalPhase::Failed));
        }
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let first = report(
            [RunState::Terminated(ended(0)), running(), running()],
            None,
            &[],
            5,
        );
        let previous = first.conditions.unwrap();
        let second = report(
            [
                RunState::Terminated(ended(0)),
                running(),
                RunState::Terminated(ended(0)),
            ],
            None,
            &previous,
            9,
        );
        let times: Vec<i64> = second
            .conditions
            .iter()
            .flatten()
            .take(4)
            .map(|c| c.last_transition_time.as_ref().unwrap().0.as_second())
            .collect();
        assert_eq!(times, [5, 5, 9, 9]);
    }

    #[test]
    fn a_restarted_container_shows_its_last_state() {
        let mut record = containers(&pod()).remove(1);
        record.started(7, Timestamp::UNIX_EPOCH);
        record.ended(
            ended(137),
            true,
            "pod",
            &RestartBackoff::default(),
            Instant::now(),
        );
        let value = serde_json::to_value(container_status(&record)).unwrap();
        let expected: Value = json!({
            "name": "main", "image": "b", "imageID": "", "containerID": "local://7",
            "ready": false, "started": false, "restartCount": 0,
            "state": {"waiting": {"reason": "CrashLoopBackOff",
                "message": "back-off 0s restarting failed container=main pod=pod"}},
            "lastState": {"terminated": {"exitCode": 137, "reason": "Error", "message": "boom", "containerID": "local://7",
                "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:00:00Z"}},
        });
        assert_eq!(value, expected);
    }
}
