//! What the node agent tells its user while it works.

use std::fmt;

use k8s_openapi::api::core::v1::PodStatus;

use super::environment::Difference;

/// Something to show to the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeEvent {
    /// A container is about to be started for the first time.
    Prepared(Prepared),
    /// A process wrote a line.
    Log(LogLine),
    /// A pod's phase has changed, or why it waits.
    Phase(PodPhase),
}

/// A container about to be started, and in what it differs from the same container in a cluster.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// All that differs: what its user may want to know when something goes otherwise than in a cluster.
    pub differences: Vec<Difference>,
}

/// How far a pod has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPhase {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// `Pending`, `Running`, `Succeeded` or `Failed`.
    pub phase: String,
    /// The highest exit code of its containers, once it has ended.
    pub exit_code: Option<i32>,
    /// Why a container does not run, or the pod was ended, as far as it is known.
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
    /// The line without its end. What is not UTF-8 is replaced, and a line of more than 16 KiB comes in pieces.
    pub text: String,
    /// Where the process wrote it.
    pub stream: Stream,
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
    pub(super) fn of(namespace: &str, pod: &str, status: &PodStatus) -> Self {
        let containers = || {
            let all = [&status.init_container_statuses, &status.container_statuses];
            all.into_iter().flatten().flatten()
        };
        let phase = status.phase.clone().unwrap_or_default();
        let over = matches!(phase.as_str(), "Succeeded" | "Failed");
        let codes = containers().filter_map(|c| Some(c.state.as_ref()?.terminated.as_ref()?.exit_code));
        let waiting = containers().find_map(|c| c.state.as_ref()?.waiting.as_ref()?.message.clone());
        Self {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            phase,
            exit_code: codes.max().filter(|_| over),
            message: status.message.clone().or(waiting),
        }
    }
}

impl fmt::Display for PodPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phase)?;
        if let Some(code) = self.exit_code.filter(|code| *code != 0) {
            write!(f, " with exit code {code}")?;
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
