//! The kinds of 2017 that preceded MXJob and TFJob: `mxnet.mlkube.io/v1beta1 MxJob` (deepinsight/mxnet-operator) and
//! `mlkube.io/v1beta1 TfJob` (the origin of tf-operator). `docs/users/mlkube.md` lists what is kept and what differs.

mod mxjob;
mod replica;
mod runtime_id;
mod status;
mod tfjob;

pub use mxjob::{MxJob, MxJobSpec, MxJobStatus, MxReplicaSpec};
pub use status::{Counts, RoleStatusEntry, Status};
pub use tfjob::{TensorBoard, TfJob, TfJobSpec, TfJobStatus, TfReplicaSpec};
