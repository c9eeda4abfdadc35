//! XGBoostJob: distributed training with XGBoost or LightGBM (a master, which takes part as rank 0,
//! and workers), as the Kubeflow training operator v1.8.1 had it.

mod environment;
mod job;

pub use job::{XGBoostJob, XGBoostJobSpec};
