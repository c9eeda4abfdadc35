//! `mlkube.io/v1beta1 TfJob`.

mod environment;
mod job;
mod spec;
mod template;
mod tensorboard;

pub use spec::{TensorBoard, TfJob, TfJobSpec, TfJobStatus, TfReplicaSpec};
