//! MPIJob: a launcher whose `mpirun` starts processes in the pods of workers, by the remote shell of the API server, as the
//! Kubeflow training operator v1.8.1 had it (API v1).

mod environment;
mod job;
mod objects;

pub use job::{MPIJob, MPIJobSpec};
