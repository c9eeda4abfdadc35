//! Events of jobs that run on this machine.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::DynamicObject;

use local_node::NodeEvent;
use training_job::api::JobCondition;

/// An event of jobs on this machine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEvent {
    /// A condition of a job has become true.
    Condition {
        /// The job's name.
        job: String,
        /// The condition.
        condition: JobCondition,
    },
    /// A pod was created, has changed, or was deleted: for tables of all replicas. The pods that are left at the end
    /// of the run are sent once more.
    Pod {
        /// The pod.
        pod: Box<Pod>,
        /// True if the pod was deleted; `pod` is then its last state.
        gone: bool,
        /// The reason that the pod can never start on this machine, if any.
        dead_end: Option<String>,
    },
    /// The operator warns of something that no condition of the job says.
    Warning {
        /// The job's name.
        job: String,
        /// The reason and the message of the warning.
        message: String,
    },
    /// A job was created or has changed: its present state.
    Job(Box<DynamicObject>),
    /// An event of the API about a job or a pod was created or has changed.
    Event(Box<Event>),
    /// An event of the node: a line of output, a pod's phase.
    Node(NodeEvent),
}

impl RunEvent {
    /// Returns the event as a line to print, if it is worth one: `POD | OUTPUT`, `POD * PHASE`, `JOB * CONDITION`.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Condition { job, condition } => {
                Some(format!("{job} * {}: {}", condition.type_, condition.message))
            }
            Self::Warning { job, message } => Some(format!("{job} * {message}")),
            Self::Node(NodeEvent::Log(log)) => Some(match &log.container {
                Some(container) => format!("{}/{container} | {}", log.pod, log.text),
                None => format!("{} | {}", log.pod, log.text),
            }),
            Self::Node(NodeEvent::Phase(phase)) => Some(format!("{} * {phase}", phase.pod)),
            Self::Node(NodeEvent::LogLost(lost)) => Some(format!("{} * {lost}", lost.pod)),
            Self::Node(_) | Self::Pod { .. } | Self::Job(_) | Self::Event(_) => None,
        }
    }
}
