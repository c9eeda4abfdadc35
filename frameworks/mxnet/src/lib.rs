//! MXJob: training with Apache MXNet or BytePS (scheduler, servers, workers) and tuning with TVM (tracker, servers,
//! tuner), as in the Kubeflow training operator v1.8.1 and in the stand-alone mxnet-operator before it.

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
