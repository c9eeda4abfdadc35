//! PaddleJob: distributed training with PaddlePaddle, as in the Kubeflow training operator v1.8.1. A job has only
//! workers (collective training), or also masters, which are the parameter servers.

mod elastic;
mod environment;
mod job;
#[cfg(feature = "local")]
mod local;

pub use elastic::ElasticPolicy;
pub use job::{PaddleJob, PaddleJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
