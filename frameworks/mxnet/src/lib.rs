//! MXJob: Apache MXNet training (scheduler, servers, workers; BytePS as well) and TVM tuning
//! (tracker, servers, tuner), as the Kubeflow training operator v1.8.1 and the stand-alone
//! mxnet-operator before it had them.

mod definition;
mod environment;
mod job;
mod spec;

pub use spec::{JobMode, MXJob, MXJobSpec};
