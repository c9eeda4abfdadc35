//! PaddleJob: distributed training with PaddlePaddle (workers alone, as a collective; or with masters, which
//! are their parameter servers), as the Kubeflow training operator v1.8.1 had it.

mod elastic;
mod environment;
mod job;

pub use elastic::ElasticPolicy;
pub use job::{PaddleJob, PaddleJobSpec};
