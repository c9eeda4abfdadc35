//! MXJob: Apache MXNet training (scheduler, servers, workers; BytePS as well) and TVM tuning
//! (tracker, servers, tuner), as the Kubeflow training operator v1.8.1 and the stand-alone
//! mxnet-operator before it had them.

mod compatibility;
mod definition;
mod environment;
mod job;
#[cfg(feature = "local")]
mod local;
mod spec;
mod status;
mod warnings;

pub use compatibility::Compatibility;
#[cfg(feature = "local")]
pub use local::adjust_local;
pub use spec::{JobMode, MXJob, MXJobSpec, MXReplicaSpec};
pub use status::MXJobStatus;
