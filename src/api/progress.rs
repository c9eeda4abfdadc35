//! The progress of a job, as its replicas print it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::policy::words;

/// The least value of `stalledAfterSeconds`, because output is read at most this often.
pub const MIN_STALLED_AFTER_SECONDS: i32 = 15;

/// The maximum length of a pattern in bytes.
pub const MAX_PATTERN_BYTES: usize = 1_024;

/// Finds jobs that hang by the output of their replicas, and shows their progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressPolicy {
    /// Seconds without output of the watched replicas, or with a pattern without a new step, after which the job is stalled, at
    /// least 15. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = MIN_STALLED_AFTER_SECONDS))]
    pub stalled_after_seconds: Option<i32>,

    /// The same limit from the start of a watched container to its first progress. Default: stalledAfterSeconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = MIN_STALLED_AFTER_SECONDS))]
    pub start_seconds: Option<i32>,

    /// Regular expression for the lines that show progress, at most 1024 bytes. Its named groups are numbers: step, total,
    /// loss, and others, as in `step (?P<step>\d+)/(?P<total>\d+)`. Default: all output counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,

    /// Replicas whose output is read: Deciding is the one that prints for all, such as rank 0, and All is every replica of at
    /// most 100. A job is stalled if all of them are. Default: Deciding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchedReplicas>,

    /// Action when the job is stalled. Report sets the condition Stalled and sends an event. Restart restarts the job, which
    /// counts against its limits. Fail fails it. Default: Report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_stall: Option<StallAction>,
}

words! {
    /// The replicas whose output is read.
    WatchedReplicas {
        /// The replica that prints for all.
        Deciding,
        /// All replicas.
        All,
    }
}

words! {
    /// The action when a job is stalled.
    StallAction {
        /// The job gets the condition Stalled and an event.
        Report,
        /// All replicas restart.
        Restart,
        /// The job fails.
        Fail,
    }
}

/// The progress of a job as its replicas last printed it. It is written together with other changes, or by itself at most
/// once a minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressStatus {
    /// Progress in a few characters: `1200/5000`, or `step 1200`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Latest step.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub step: Option<f64>,
    /// Number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub total: Option<f64>,
    /// Latest loss, with four digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Other numbers of the pattern.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
    /// Time of the line, by the clock of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Latest line that counts as progress, at most 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
}

/// Writes a whole number without a fraction.
fn number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    /// The whole numbers up to it are exact.
    const MAX: f64 = 9_007_199_254_740_992.0;
    match number {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the bound")]
        Some(whole) if whole.fract() == 0.0 && whole.abs() <= MAX => serializer.serialize_i64(*whole as i64),
        other => other.serialize(serializer),
    }
}
