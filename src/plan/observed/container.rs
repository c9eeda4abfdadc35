//! Compact records of containers, their ends, and their restarts by the kubelet.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};
use serde::Deserialize;

use crate::api::{RestartPolicy, is_writable};

use super::message::cut;

/// The action of a restart rule that restarts all containers of the pod, those that have ended included.
const RESTART_ALL: &str = "RestartAllContainers";

/// The reason of a container that the kubelet ended in order to restart all containers of the pod.
const RESTARTING_ALL: &str = "RestartingAllContainers";

/// The kind of a container in a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerKind {
    /// One of `containers`.
    #[default]
    Regular,
    /// An init container that must end before the others start.
    Init,
    /// An init container that runs beside the others, having `restartPolicy: Always`.
    Sidecar,
}

/// The record of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecord {
    /// The name of the container.
    pub name: String,
    /// The kind of the container.
    pub kind: ContainerKind,
    /// The number of restarts by the kubelet.
    pub restarts: i32,
    /// The end of the container, if it has ended and has not been restarted.
    pub ended: Option<Termination>,
    /// The end of the container before its latest restart.
    pub last: Option<Termination>,
    /// The reason and message why the container waits.
    pub waiting: Option<(String, String)>,
    /// The restart policy and rules of the container, if it has a policy of its own.
    pub restart: Option<Box<ContainerRestart>>,
}

/// The name and the restart policy of a container, as in its spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRestart {
    /// The name of the container.
    pub name: String,
    /// The restart policy. Default: that of the pod.
    pub restart_policy: Option<RestartPolicy>,
    /// The restart rules. The first one that matches the exit code takes precedence over the restart policy. They have
    /// no effect without a restart policy.
    pub restart_policy_rules: Option<Vec<RestartRule>>,
}

/// A rule of a container for certain exit codes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartRule {
    /// The action: `Restart`, or `RestartAllContainers`.
    pub action: String,
    /// The exit codes. A rule without them matches none.
    pub exit_codes: Option<RestartExitCodes>,
}

/// The exit codes that a restart rule matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RestartExitCodes {
    /// `In` or `NotIn`.
    pub operator: String,
    /// The exit codes.
    pub values: Option<Vec<i32>>,
}

impl RestartExitCodes {
    fn contain(&self, code: i32) -> bool {
        let is_listed = self.values.iter().flatten().any(|value| *value == code);
        match self.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    }
}

impl ContainerRestart {
    /// Returns the action of the first rule that matches an exit code, if any.
    fn action(&self, code: i32) -> Option<&str> {
        let mut rules = self.restart_policy_rules.iter().flatten();
        let rule = rules.find(|rule| rule.exit_codes.as_ref().is_some_and(|codes| codes.contain(code)));
        rule.map(|rule| rule.action.as_str())
    }

    /// Returns true if an end of the container can restart all containers of its pod.
    pub(super) fn may_restart_all(&self) -> bool {
        let mut rules = self.restart_policy_rules.iter().flatten();
        rules.any(|rule| rule.action == RESTART_ALL)
    }
}

impl ContainerRecord {
    /// Returns the action of the restart rule that matches the end of the container, if any.
    fn action(&self) -> Option<&str> {
        self.restart.as_ref()?.action(self.ended.as_ref()?.exit_code)
    }

    /// Returns the end of the container if a restart rule restarts all containers of the pod after it.
    pub(super) fn end_that_restarts_all(&self) -> Option<&Termination> {
        self.ended.as_ref().filter(|_| self.action() == Some(RESTART_ALL))
    }

    /// Returns true if the kubelet restarts the container after its end, because of its own end alone. `of_pod` is the
    /// restart policy of the pod.
    pub(super) fn restarts_by_itself(&self, of_pod: Option<&RestartPolicy>) -> bool {
        let Some(end) = &self.ended else {
            return false;
        };
        let own = self.restart.as_ref().and_then(|own| own.restart_policy.as_ref());
        match own.or(of_pod) {
            _ if end.is_for_restart() || matches!(self.action(), Some("Restart" | RESTART_ALL)) => true,
            Some(RestartPolicy::Always) => true,
            Some(RestartPolicy::OnFailure) => end.exit_code != 0,
            _ => false,
        }
    }
}

/// The end of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// The exit code of the container.
    pub exit_code: i32,
    /// The signal that ended the container, if known.
    pub signal: Option<i32>,
    /// The reason, in one word.
    pub reason: Option<String>,
    /// The message; at most [`MAX_MESSAGE`](super::MAX_MESSAGE) bytes.
    pub message: Option<String>,
    /// The start time.
    pub started_at: Option<Timestamp>,
    /// The end time.
    pub finished_at: Option<Timestamp>,
    /// The order of this end and of the deletion or disruption of the pod, as the controller observed them.
    pub order: EndOrder,
}

impl Termination {
    /// Returns true if the kubelet ended the container in order to restart all containers of the pod.
    pub(crate) fn is_for_restart(&self) -> bool {
        self.reason.as_deref() == Some(RESTARTING_ALL)
    }
}

/// The order in which the controller observed the end of a process, and the deletion or disruption of its pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndOrder {
    /// The controller has not observed one without the other.
    #[default]
    Unknown,
    /// The process had ended while the pod was neither deleted nor disrupted.
    EndedFirst,
    /// The process ran while the pod was being deleted or disrupted.
    GoingFirst,
}

impl From<&ContainerStatus> for ContainerRecord {
    fn from(status: &ContainerStatus) -> Self {
        let state = status.state.as_ref();
        let waiting = state.and_then(|s| s.waiting.as_ref());
        let last = status.last_state.as_ref();
        Self {
            name: status.name.clone(),
            kind: ContainerKind::Regular,
            restarts: status.restart_count.max(0),
            ended: state.and_then(|s| s.terminated.as_ref()).map(Termination::from),
            last: last.and_then(|s| s.terminated.as_ref()).map(Termination::from),
            waiting: waiting
                .and_then(|w| Some((w.reason.clone()?, cut(w.message.clone().unwrap_or_default())))),
            restart: None,
        }
    }
}

impl From<&ContainerStateTerminated> for Termination {
    fn from(state: &ContainerStateTerminated) -> Self {
        Self {
            exit_code: state.exit_code,
            signal: state.signal.filter(|s| *s != 0),
            reason: state.reason.clone().filter(|r| !r.is_empty()).map(cut),
            message: state.message.clone().filter(|m| !m.is_empty()).map(cut),
            started_at: state.started_at.as_ref().map(|t| t.0),
            // The time becomes part of a status.
            finished_at: state
                .finished_at
                .as_ref()
                .map(|t| t.0)
                .filter(|t| is_writable(*t)),
            order: EndOrder::default(),
        }
    }
}
