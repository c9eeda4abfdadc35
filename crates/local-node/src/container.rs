//! The record of each container of a pod: its state, its last end, its restarts.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::time::Instant;

use super::config::RestartBackoff;
use super::restart::OwnRestart;

/// The time without a restart after which the backoff of a container starts from the beginning.
const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(600);

/// The part of the pod's life in which a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerType {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container with `restartPolicy: Always`: runs beside the others and ends after them.
    Sidecar,
    Main,
}

/// The time at which a waiting container may start, once its predecessors allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Now,
    At(Instant),
    /// The container cannot start as this pod is written.
    Never,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Termination {
    pub(super) exit_code: i32,
    pub(super) signal: Option<i32>,
    pub(super) reason: String,
    pub(super) message: Option<String>,
    pub(super) started: Option<Timestamp>,
    pub(super) finished: Timestamp,
    pub(super) pid: Option<u32>,
}

/// The state of a container, as reported to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Waiting {
        reason: &'static str,
        message: Option<String>,
        start: Start,
    },
    Running {
        pid: u32,
        started: Timestamp,
    },
    Terminated(Termination),
}

/// One container of a pod.
#[derive(Clone, Debug)]
pub(super) struct ContainerRecord {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) type_: ContainerType,
    pub(super) own_restart: Option<OwnRestart>,
    pub(super) state: RunState,
    /// The end of the previous run.
    pub(super) last: Option<Termination>,
    pub(super) restarts: i32,
    /// The restarts since the container last ran well: the exponent of the backoff.
    restarts_in_a_row: u32,
}

impl ContainerRecord {
    pub(super) fn new(container: &Container, type_: ContainerType, reason: &'static str) -> Self {
        Self {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            type_,
            own_restart: OwnRestart::of(container),
            state: RunState::Waiting {
                reason,
                message: None,
                start: Start::Now,
            },
            last: None,
            restarts: 0,
            restarts_in_a_row: 0,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, RunState::Running { .. })
    }

    pub(super) fn started(&mut self, pid: u32, now: Timestamp) {
        self.restarts += i32::from(self.last.is_some());
        self.state = RunState::Running { pid, started: now };
    }

    /// Records the end of a run. With `restart` the container then waits for the next run.
    pub(super) fn ended(
        &mut self,
        end: Termination,
        restart: bool,
        pod: &str,
        backoff: &RestartBackoff,
        now: Instant,
    ) {
        if matches!(self.state, RunState::Waiting { .. }) {
            // The container never became a process, but the attempt counts as a restart.
            self.restarts += i32::from(self.last.is_some());
        }
        if !restart {
            self.state = RunState::Terminated(end);
            return;
        }
        let ran = end
            .started
            .and_then(|started| Duration::try_from(end.finished.duration_since(started)).ok());
        if ran.is_some_and(|ran| ran >= BACKOFF_RESET_AFTER) {
            self.restarts_in_a_row = 0;
        }
        let delay = backoff.delay(self.restarts_in_a_row);
        self.restarts_in_a_row += 1;
        let message = format!(
            "back-off {}s restarting failed container={} pod={pod}",
            delay.as_secs(),
            self.name
        );
        self.state = RunState::Waiting {
            reason: "CrashLoopBackOff",
            message: Some(message),
            start: if delay.is_zero() {
                Start::Now
            } else {
                Start::At(now + delay)
            },
        };
        self.last = Some(end);
    }
}

/// Returns all containers of a pod, init containers first, none started.
pub(super) fn containers(pod: &Pod) -> Vec<ContainerRecord> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let init = spec.init_containers.iter().flatten().map(|container| {
        let sidecar = container.restart_policy.as_deref() == Some("Always");
        ContainerRecord::new(
            container,
            if sidecar {
                ContainerType::Sidecar
            } else {
                ContainerType::Init
            },
            "PodInitializing",
        )
    });
    let waiting = if spec.init_containers.iter().flatten().next().is_some() {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    let main = spec
        .containers
        .iter()
        .map(|container| ContainerRecord::new(container, ContainerType::Main, waiting));
    init.chain(main).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::next_step;
    use serde_json::json;

    fn ended(exit_code: i32) -> Termination {
        Termination {
            exit_code,
            signal: None,
            reason: String::new(),
            message: None,
            started: Some(Timestamp::UNIX_EPOCH),
            finished: Timestamp::UNIX_EPOCH,
            pid: Some(1),
        }
    }

    #[test]
    fn restarts_are_counted_and_back_off() {
        let now = Instant::now();
        let mut record = ContainerRecord::new(&Container::default(), ContainerType::Main, "x");
        let mut delays = Vec::new();
        for round in 0..8 {
            record.started(7, Timestamp::UNIX_EPOCH);
            assert_eq!(record.restarts, round);
            record.ended(ended(1), true, "pod", &RestartBackoff::default(), now);
            delays.push(match record.state {
                RunState::Waiting {
                    reason: "CrashLoopBackOff",
                    start: Start::Now,
                    ..
                } => 0,
                RunState::Waiting {
                    start: Start::At(due),
                    ..
                } => (due - now).as_secs(),
                _ => panic!("not waiting"),
            });
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        let mut long = ended(1);
        long.finished = Timestamp::UNIX_EPOCH + Duration::from_secs(600);
        record.ended(long, true, "pod", &RestartBackoff::default(), now);
        assert!(matches!(
            record.state,
            RunState::Waiting {
                start: Start::Now,
                ..
            }
        ));
        assert_eq!(next_step(&[record], false, now).start, [0]);
    }

    #[test]
    fn containers_of_a_pod() {
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [{"name": "a", "image": "i"}, {"name": "b", "restartPolicy": "Always"}],
            "containers": [{"name": "c"}],
        }}))
        .unwrap();
        let types: Vec<_> = containers(&pod)
            .into_iter()
            .map(|record| (record.name, record.type_))
            .collect();
        assert_eq!(
            types,
            [
                ("a".into(), ContainerType::Init),
                ("b".into(), ContainerType::Sidecar),
                ("c".into(), ContainerType::Main)
            ]
        );
    }
}
