//! JAXJob: distributed training with JAX (workers, the first of which coordinates them), as the Kubeflow
//! training operator v1.9.0 had it.

mod environment;
mod job;
#[cfg(feature = "local")]
mod local;

pub use job::{JAXJob, JAXJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
