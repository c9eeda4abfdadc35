//! The status of an MXJob.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use training_job::api::{JobStatus, ReplicaStatus};

use crate::{Compatibility, MXJob};

/// The status of a training job, with a field of the stand-alone mxnet-operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MXJobStatus {
    /// The fields that all training jobs have.
    #[serde(flatten)]
    pub job: JobStatus,

    /// A copy of `replicaStatuses` for scripts that were written for the stand-alone mxnet-operator. Only jobs with its
    /// rules have this field. The operator does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, ReplicaStatus>")]
    pub mx_replica_statuses: Option<Value>,
}

impl MXJob {
    /// Returns the status to write. A job that has `mxReplicaStatuses` keeps it, even if other rules apply now.
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
