//! The kinds of job that this project's programs know.

use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_review::Kinds;
use training_job_tensorflow::TFJob;
use training_job_xgboost::XGBoostJob;

use crate::convert::unserved;

/// The groups of the ancestors' kinds, which run here as well if they are enabled.
pub const FORMER_GROUPS: [&str; 2] = ["mxnet.mlkube.io", "mlkube.io"];

/// Returns the kinds, in the order of help texts. A new framework gets one line here.
pub fn kinds() -> Kinds {
    Kinds::default()
        .kind::<MXJob>()
        .kind::<TFJob>()
        .kind::<XGBoostJob>()
        .kind::<PyTorchJob>()
        .kind::<JAXJob>()
        .kind::<PaddleJob>()
        .kind::<MPIJob>()
        .kind::<TfJob>()
        .kind::<MxJob>()
        .unserved(unserved)
        .former_groups(&FORMER_GROUPS)
}
