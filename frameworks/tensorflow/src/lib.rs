//! TFJob: distributed training with TensorFlow (parameter servers, workers, a chief or master, an
//! evaluator), as the Kubeflow training operator v1.8.1 had it.

mod environment;
mod job;
#[cfg(feature = "local")]
mod local;

pub use job::{TFJob, TFJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
