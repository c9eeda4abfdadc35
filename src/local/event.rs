//! What the node agent tells its user while it works.

use std::fmt;

use super::environment::Difference;

/// Something to show to the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NodeEvent {
    /// A container is about to be started for the first time.
    Prepared(Prepared),
    /// A process wrote a line.
    Log(LogLine),
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

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.container {
            Some(container) => write!(f, "{}/{container}: {}", self.pod, self.text),
            None => write!(f, "{}: {}", self.pod, self.text),
        }
    }
}
