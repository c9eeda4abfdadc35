//! PyTorchJob: distributed training with PyTorch, as in the Kubeflow training operator v1.8.1. A job has a master
//! (rank 0) and workers, or only workers. With torchrun their number may change.

mod elastic;
mod environment;
mod job;
#[cfg(feature = "local")]
mod local;
mod objects;
mod waiting;
mod warnings;

pub use elastic::{ElasticPolicy, RdzvConf};
pub use job::{PyTorchJob, PyTorchJobSpec};
#[cfg(feature = "local")]
pub use local::adjust_local;
