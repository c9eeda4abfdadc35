//! JAXJob: distributed training with JAX, as in the Kubeflow training operator v1.9.0. The first worker is the
//! coordinator.

mod environment;
mod job;
#[cfg(feature = "local")]
mod local;

pub use job::{JAXJob, JAXJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
