//! Events that the node agent sends to its user.

use std::fmt;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::ResourceExt;

use super::environment::Difference;
use super::status::was_stopped;

/// An event of the node for its user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeEvent {
    /// A container is about to be started for the first time.
    Prepared(Prepared),
    /// A process wrote a line.
    Log(LogLine),
    /// A pod's phase, or the reason that it waits, has changed.
    Phase(PodPhase),
    /// The file for a process's output cannot be written any more.
    LogLost(LogLost),
}

/// A file of a process's output that cannot be written any more. The output is still sent as [`NodeEvent::Log`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLost {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The error of the first failed write.
    pub error: String,
}

/// For people: `the rest of its log is not stored: No space left on device`.
impl fmt::Display for LogLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rest of its log is not stored: {}", self.error)
    }
}

/// A container about to be started, with its differences from the same container in a cluster.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// The differences, which may explain why a program behaves otherwise than in a cluster.
    pub differences: Vec<Difference>,
}

/// The progress of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPhase {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// `Pending`, `Running`, `Succeeded` or `Failed`.
    pub phase: String,
    /// The highest exit code of the pod's containers, once the pod has ended.
    pub exit_code: Option<i32>,
    /// True if the pod was stopped before it ended by itself: it was deleted, or the node shut down. The phase is
    /// `Failed` then, unless the pod was deleted before its end could be reported. False for a pod that was stopped
    /// and still succeeds.
    pub stopped: bool,
    /// The reason that a container does not run or that the pod was ended, if known.
    pub message: Option<String>,
}

/// A line of a process's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name, if the pod has several.
    pub container: Option<String>,
    /// The line without its end. Bytes that are not UTF-8 are replaced. A line of more than 16 KiB is sent in pieces.
    pub text: String,
    /// The stream that the process wrote to.
    pub stream: Stream,
    /// True for the present state of a line that overwrites itself, as a progress bar does. At most one a second is sent.
    /// Further states, and at last the line itself, follow.
    pub is_update: bool,
}

/// The two outputs of a process. The order between them is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl PodPhase {
    /// Returns the progress of a pod of the API. `gone` is true if the pod was deleted and this is its last state.
    #[must_use]
    pub fn from_pod(pod: &Pod, gone: bool) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let mut phase = Self::from_status(&namespace, &pod.name_any(), &status);
        phase.stopped |= gone && !phase.is_over();
        phase
    }

    pub(super) fn from_status(namespace: &str, pod: &str, status: &PodStatus) -> Self {
        let containers = || {
            let all = [&status.init_container_statuses, &status.container_statuses];
            all.into_iter().flatten().flatten()
        };
        let phase = status.phase.clone().unwrap_or_default();
        let codes = containers().filter_map(|c| Some(c.state.as_ref()?.terminated.as_ref()?.exit_code));
        let waiting = containers().find_map(|c| c.state.as_ref()?.waiting.as_ref()?.message.clone());
        let mut phase = Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            phase,
            exit_code: None,
            stopped: was_stopped(status),
            message: status.message.clone().or(waiting),
        };
        phase.exit_code = codes.max().filter(|_| phase.is_over());
        phase
    }

    fn is_over(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

/// For people: `Running`, `Failed with exit code 3`, `Stopped`, each followed by the message if there is one.
impl fmt::Display for PodPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exit_code.filter(|code| *code != 0) {
            _ if self.stopped => f.write_str("Stopped")?,
            Some(code) => write!(f, "{} with exit code {code}", self.phase)?,
            None => f.write_str(&self.phase)?,
        }
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.container {
            Some(container) => write!(f, "{}/{container}: {}", self.pod, self.text),
            None => write!(f, "{}: {}", self.pod, self.text),
        }
    }
}
