//! MPIJob: a launcher whose `mpirun` starts processes in the workers' pods. Jobs of v1 start them through the exec API of
//! the API server, as in the Kubeflow training operator v1.8.1. Those of v2beta1 start them by SSH, as in mpi-operator
//! v0.8.2.

mod api;
mod definition;
mod environment;
mod job;
mod keys;
#[cfg(feature = "local")]
mod local;
mod objects;
mod roles;
mod settings;
pub mod ssh;
mod v2beta1;

pub use api::{MPIJob, MPIJobSpec, MPIJobStatus};
#[cfg(feature = "local")]
pub use local::adjust_local;
