//! PyTorchJob: distributed training with PyTorch (a master, which takes part as rank 0, and workers; or
//! workers alone, which torchrun may let come and go), as the Kubeflow training operator v1.8.1 had it.

mod elastic;
mod environment;
mod job;
#[cfg(feature = "local")]
mod local;
mod objects;
mod waiting;

pub use elastic::{ElasticPolicy, RdzvConf};
pub use job::{PyTorchJob, PyTorchJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
