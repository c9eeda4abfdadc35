//! The two versions of MPIJob, and the one whose rules apply to a job.

use serde::{Deserialize, Serialize};

use crate::job::MPIJob;

/// The version of the API by whose rules a job runs.
///
/// Both versions are one resource, stored as v1, and the API server does not tell in which version a job was created. A
/// job of v2beta1 has the defaults of that version's schema. A later write through v2beta1 adds them to a job of v1 too, so
/// the version that applied first is kept in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Version {
    /// `mpirun` starts processes by the exec API, as in the training operator v1.8.1.
    #[serde(rename = "v1")]
    V1,
    /// `mpirun` starts processes by SSH, as in mpi-operator v0.8.2.
    #[serde(rename = "v2beta1")]
    V2beta1,
}

impl Version {
    pub(crate) fn of(job: &MPIJob) -> Self {
        let stored = job.status.as_ref().and_then(|status| status.version);
        let spec = &job.spec;
        let has_defaults = spec.ssh_auth_mount_path.is_some()
            || spec.mpi_implementation.is_some()
            || spec.run_launcher_as_worker.is_some();
        stored.unwrap_or(match has_defaults {
            true => Self::V2beta1,
            false => Self::V1,
        })
    }
}
