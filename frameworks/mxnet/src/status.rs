//! The status of an MXJob on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use training_job::api::{JobStatus, ReplicaStatus};

use crate::{Compatibility, MXJob};

/// The status of every training job, and what the stand-alone mxnet-operator had under another name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MXJobStatus {
    /// The status of every training job.
    #[serde(flatten)]
    pub job: JobStatus,

    /// As `replicaStatuses`, for scripts that were written for the stand-alone mxnet-operator; in jobs that are read as its
    /// manifests. Never read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, ReplicaStatus>")]
    pub mx_replica_statuses: Option<Value>,
}

impl MXJob {
    /// The status as it is written. A job that has `mxReplicaStatuses` keeps it up to date, however it is read now.
    pub(crate) fn status_on_the_wire(&self, status: &JobStatus) -> serde_json::Result<Value> {
        let mut written = serde_json::to_value(status)?;
        let has_it = self
            .status
            .as_ref()
            .is_some_and(|s| s.mx_replica_statuses.is_some());
        if has_it || self.spec.compatibility_mode() == Compatibility::MXNetOperator {
            written["mxReplicaStatuses"] = serde_json::to_value(&status.replica_statuses)?;
        }
        Ok(written)
    }
}
