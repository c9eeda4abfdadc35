//! The kinds of 2017 from which MXJob and TFJob come: `mxnet.mlkube.io/v1beta1 MxJob` (deepinsight/mxnet-operator) and
//! `mlkube.io/v1beta1 TfJob` (the first of what became tf-operator). What is kept of them and what differs is in
//! `docs/mlkube.md`.

mod mxjob;
mod replica;
mod runtime_id;
mod status;
mod tfjob;

pub use mxjob::{MxJob, MxJobSpec, MxJobStatus, MxReplicaSpec};
pub use status::{Counts, OfRole, Status};
pub use tfjob::{TensorBoard, TfJob, TfJobSpec, TfJobStatus, TfReplicaSpec};
