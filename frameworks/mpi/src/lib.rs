//! MPIJob: a launcher whose `mpirun` starts processes in the pods of workers, by the remote shell of the API server, as the
//! Kubeflow training operator v1.8.1 had it (API v1).

mod environment;
mod job;
#[cfg(feature = "local")]
mod local;
mod objects;

pub use job::{MPIJob, MPIJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
