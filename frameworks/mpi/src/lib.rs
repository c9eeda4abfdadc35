//! MPIJob: a launcher whose `mpirun` starts processes in the workers' pods through the exec API of the API server, as
//! in the Kubeflow training operator v1.8.1 (API v1).

mod environment;
mod job;
#[cfg(feature = "local")]
mod local;
mod objects;
mod roles;
mod settings;
pub mod ssh;

pub use job::{MPIJob, MPIJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
