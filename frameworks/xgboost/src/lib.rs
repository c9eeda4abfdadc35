//! XGBoostJob: distributed training with XGBoost or LightGBM (a master, which is rank 0, and workers), as in the
//! Kubeflow training operator v1.8.1.

mod environment;
mod job;

pub use job::{XGBoostJob, XGBoostJobSpec};
