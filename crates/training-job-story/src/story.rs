//! The JSON value of a story.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::curve::Curve;
use crate::rendered::RenderedRole;
use crate::settings::Setting;

/// The version of the format. A reader rejects a greater one.
pub const VERSION: u32 = 1;

/// The story of a job as of [`observed_at`](Self::observed_at). Texts are printable and bounded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// Version of the format: [`VERSION`].
    pub version: u32,
    /// API version of the job.
    pub api_version: String,
    /// Kind of the job, such as `PyTorchJob`.
    pub kind: String,
    /// Namespace of the job.
    pub namespace: String,
    /// Name of the job.
    pub name: String,
    /// UID of the job.
    pub uid: String,
    /// State in one word: the latest condition that is true, or `Pending`.
    pub state: String,
    /// Time of the observation.
    pub observed_at: Timestamp,
    /// Creation of the job.
    pub created_at: Timestamp,
    /// Start of the job, or its latest resumption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Success or failure of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Number of restarts that count against the limit.
    #[serde(default)]
    pub restarts: i32,
    /// Value of `backoffLimit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_limit: Option<i64>,
    /// Failure that restarted or ended the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Reason in one word why no replica runs, such as `Unschedulable`; empty if one does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub waiting_reason: String,
    /// Progress of a watched job in a few characters, such as `1200/5000`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress: String,
    /// Earlier failures, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_failures: Vec<Failure>,
    /// Conditions, oldest change first.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// Replicas by role and index.
    #[serde(default)]
    pub replicas: Vec<Replica>,
    /// Events of the job and its pods, oldest first.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Metrics that the replicas printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// Values of the spec.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Pods and services as rendered, by role.
    #[serde(default)]
    pub rendered: Vec<RenderedRole>,
    /// Settings that are valid but almost certainly a mistake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Numbers of items that were left out, because a story is bounded.
    #[serde(default)]
    pub omitted: Omitted,
    /// Sentences about what could not be read, and is missing for this reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A condition of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type, such as `Running`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status: True, False or Unknown.
    pub status: String,
    /// Reason in one word.
    pub reason: String,
    /// Reason as a sentence.
    pub message: String,
    /// Time of the last change of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// A failure that restarted or ended the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Failure in a few words, such as `worker-1: exit 3`.
    pub summary: String,
    /// Reason in one word.
    pub reason: String,
    /// Reason as a sentence, or the last lines of the container.
    pub message: String,
    /// Role of the failed replica in lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Index of the failed replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<i32>,
    /// Pod of the failed replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Container that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Exit code of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Node of the pod, if the cluster deleted or evicted the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Time of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// A replica and all its pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replica {
    /// Role in lower case.
    pub role: String,
    /// Index within the role, from 0.
    pub index: i32,
    /// Pods, oldest first.
    pub pods: Vec<PodHistory>,
}

/// The life of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodHistory {
    /// Name of the pod.
    pub name: String,
    /// UID of the pod; empty if the pod was not observed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Number of restarts of the replica before this pod.
    #[serde(default)]
    pub attempt: i32,
    /// True if the pod was not observed: its facts are those that failures and events of the job contain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inferred: bool,
    /// True if the node ended the pod: it was preempted, evicted or shut down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shut_down: bool,
    /// Node of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Phase as last observed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Reason of the phase in one word, such as `Evicted`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Reason of the phase as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Creation of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// Time when the pod was bound to its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// Time of the request to delete the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping_at: Option<Timestamp>,
    /// Time when the pod was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// Periods in which a container waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Runs of containers by start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ContainerRun>,
    /// Last lines of the pod's log, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
}

/// The beginning of a wait. It ends with the next wait or run of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// Beginning of the wait.
    pub at: Timestamp,
    /// Reason in one word, such as `Unschedulable` or `ImagePullBackOff`.
    pub reason: String,
    /// Reason as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A run of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRun {
    /// Name of the container.
    pub container: String,
    /// True if the pod's other containers started after this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_init: bool,
    /// Start of the run.
    pub started_at: Timestamp,
    /// End of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Reason of the end in one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Termination message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// Time of the line, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The line.
    pub text: String,
}

/// An event of the job or of one of its pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Time of the first occurrence, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at: Option<Timestamp>,
    /// Time of the latest occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Reason in one word.
    pub reason: String,
    /// Kind and name of the object, such as `Pod mnist-worker-0`.
    pub object: String,
    /// Event as a sentence.
    pub message: String,
    /// Number of occurrences.
    pub count: i32,
}

/// A setting that is valid but almost certainly a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// Path of the field.
    pub path: String,
    /// Problem.
    pub problem: String,
    /// Remedy.
    pub remedy: String,
}

/// The numbers of items that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Omitted {
    /// Replicas.
    pub replicas: usize,
    /// Earlier pods of replicas that are in the story.
    pub pods: usize,
    /// Runs and waits of containers.
    pub runs: usize,
    /// Lines of logs that were observed.
    pub lines: usize,
    /// Events.
    pub events: usize,
    /// Curves.
    pub curves: usize,
    /// Values of the spec.
    pub settings: usize,
}

impl Story {
    /// Returns the JSON text, indented, with a line end.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads a story.
    ///
    /// # Errors
    /// The text is not the JSON of a story, or its version is not supported.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let story: Self = serde_json::from_str(text).map_err(|error| format!("not a story: {error}"))?;
        match story.version {
            VERSION => Ok(story),
            version => Err(format!(
                "version {version} of the format is not supported; use a program that writes this version"
            )),
        }
    }

    /// Returns true if the job has succeeded or failed.
    pub fn is_finished(&self) -> bool {
        matches!(self.state.as_str(), "Succeeded" | "Failed")
    }

    /// Returns the time up to which the story extends.
    pub(crate) fn end(&self) -> Timestamp {
        let pods = || self.replicas.iter().flat_map(|replica| &replica.pods);
        let runs = pods().flat_map(|pod| &pod.runs);
        let is_open =
            pods().any(|pod| pod.gone_at.is_none() && !matches!(&*pod.phase, "Succeeded" | "Failed"));
        let ends = runs.filter_map(|run| run.finished_at);
        let ends = ends.chain(pods().flat_map(|pod| [pod.gone_at, pod.stopping_at]).flatten());
        let latest = ends.chain(self.finished_at).max();
        match latest {
            Some(latest) if self.is_finished() && !is_open => latest.max(self.created_at),
            _ => self.observed_at.max(self.created_at),
        }
    }
}

impl Replica {
    /// Returns the name of the replica, such as `worker-0`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.role, self.index)
    }

    /// Returns true if a run of the replica failed, or the replica was replaced or waits for something.
    pub(crate) fn is_troubled(&self) -> bool {
        self.pods.len() > 1 || self.pods.iter().any(PodHistory::is_troubled)
    }
}

impl PodHistory {
    /// Returns true if a run ended by a signal after the pod was asked to stop.
    pub(crate) fn was_stopped(&self, run: &ContainerRun) -> bool {
        let by_signal = run.signal.is_some() || run.exit_code.is_some_and(|code| code >= 128);
        let requested = self.stopping_at.or(self.gone_at).filter(|_| !self.is_inferred);
        // Times of a status are in whole seconds.
        let is_after = |at: Timestamp| {
            run.finished_at
                .is_some_and(|finished| finished.as_second() >= at.as_second())
        };
        by_signal && (self.is_shut_down || requested.is_some_and(is_after))
    }

    pub(crate) fn is_troubled(&self) -> bool {
        let failed = self
            .runs
            .iter()
            .any(|run| run.exit_code.is_some_and(|code| code != 0) && !self.was_stopped(run));
        failed || matches!(&*self.phase, "Failed" | "Pending")
    }
}
