//! TFJob: distributed training with TensorFlow (parameter servers, workers, a chief or master, an evaluator), as in
//! the Kubeflow training operator v1.8.1.

mod environment;
mod job;
#[cfg(feature = "local")]
mod local;

pub use job::{TFJob, TFJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
