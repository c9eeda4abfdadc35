//! PaddleJob: distributed training with PaddlePaddle (workers alone, as a collective; or with masters, which
//! are their parameter servers), as the Kubeflow training operator v1.8.1 had it.

mod elastic;
mod environment;
mod job;
#[cfg(feature = "local")]
mod local;

pub use elastic::ElasticPolicy;
pub use job::{PaddleJob, PaddleJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
