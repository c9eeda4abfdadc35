//! `mxnet.mlkube.io/v1beta1 MxJob`.

mod job;
mod spec;

pub use spec::{MxJob, MxJobSpec, MxJobStatus, MxReplicaSpec};
