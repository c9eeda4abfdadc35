//! The types of jobs in the simulation.

use serde::de::DeserializeOwned;
use serde_json::Value;
use training_job::{ObjectDefinition, Settings, TrainingJob, validate};
use training_job_controller::Operator;
use training_job_jax::JAXJob;
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_testbed::ToyJob;
use training_job_xgboost::XGBoostJob;

use crate::world::json::Json;

/// A type of job: its kind, and a mode if the kind has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobType {
    /// An MXJob that trains.
    Train,
    /// An MXJob that tunes with TVM.
    Tune,
    /// An XGBoostJob.
    XgBoost,
    /// A TFJob.
    TensorFlow,
    /// A PyTorchJob with a fixed number of processes.
    PyTorch,
    /// A PyTorchJob with a varying number of workers and an autoscaler.
    Elastic,
    /// A PaddleJob.
    Paddle,
    /// An MPIJob.
    Mpi,
    /// A JAXJob.
    Jax,
    /// A job without a framework, for tests of the controller.
    Toy,
}

/// The plurals of all kinds.
pub const PLURALS: [&str; 8] = [
    "mxjobs",
    "xgboostjobs",
    "tfjobs",
    "pytorchjobs",
    "paddlejobs",
    "mpijobs",
    "jaxjobs",
    "toyjobs",
];

/// Evaluates an expression with `$J` as the Rust type of the job type.
macro_rules! with_type {
    ($type:expr, $J:ident => $done:expr) => {
        match $type {
            JobType::Train | JobType::Tune => with_type!(MXJob, $J, $done),
            JobType::XgBoost => with_type!(XGBoostJob, $J, $done),
            JobType::TensorFlow => with_type!(TFJob, $J, $done),
            JobType::PyTorch | JobType::Elastic => with_type!(PyTorchJob, $J, $done),
            JobType::Paddle => with_type!(PaddleJob, $J, $done),
            JobType::Mpi => with_type!(MPIJob, $J, $done),
            JobType::Jax => with_type!(JAXJob, $J, $done),
            JobType::Toy => with_type!(ToyJob, $J, $done),
        }
    };
    ($of:ident, $J:ident, $done:expr) => {{
        type $J = $of;
        $done
    }};
}

impl JobType {
    /// Only MXJobs.
    pub const MXJOBS: &[Self] = &[Self::Train, Self::Train, Self::Tune];

    /// The first three kinds.
    pub const THREE_KINDS: &[Self] = &[
        Self::Train,
        Self::Train,
        Self::Tune,
        Self::XgBoost,
        Self::TensorFlow,
    ];

    /// All kinds. Kinds with more features are listed more often.
    pub const ALL_KINDS: &[Self] = &[
        Self::Train,
        Self::Tune,
        Self::XgBoost,
        Self::TensorFlow,
        Self::PyTorch,
        Self::PyTorch,
        Self::Elastic,
        Self::Elastic,
        Self::Paddle,
        Self::Mpi,
        Self::Mpi,
        Self::Mpi,
        Self::Jax,
    ];

    /// Returns the type of a stored job, derived from its kind.
    pub fn of(job: &impl Json) -> Option<Self> {
        let kind = job.member("kind").as_str()?;
        let all = Self::ALL_KINDS.iter().chain([&Self::Toy]);
        all.copied().find(|job_type| job_type.kind() == kind)
    }

    /// Returns the kind of the job type.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Train | Self::Tune => "MXJob",
            Self::XgBoost => "XGBoostJob",
            Self::TensorFlow => "TFJob",
            Self::PyTorch | Self::Elastic => "PyTorchJob",
            Self::Paddle => "PaddleJob",
            Self::Mpi => "MPIJob",
            Self::Jax => "JAXJob",
            Self::Toy => "ToyJob",
        }
    }

    /// Returns the plural of the kind.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Train | Self::Tune => "mxjobs",
            Self::XgBoost => "xgboostjobs",
            Self::TensorFlow => "tfjobs",
            Self::PyTorch | Self::Elastic => "pytorchjobs",
            Self::Paddle => "paddlejobs",
            Self::Mpi => "mpijobs",
            Self::Jax => "jaxjobs",
            Self::Toy => "toyjobs",
        }
    }

    /// Returns the name of the field that holds the replica specs.
    pub fn replica_specs_field(self) -> &'static str {
        with_type!(self, J => J::FRAMEWORK.roles_field)
    }

    /// Returns the name of the main container.
    pub fn container(self) -> &'static str {
        // Some kinds use the first container, regardless of its name.
        match with_type!(self, J => J::FRAMEWORK.main_container) {
            "" => "main",
            name => name,
        }
    }

    /// Returns the definitions of the objects that its jobs have beside pods and services.
    pub(crate) fn objects(self) -> &'static [ObjectDefinition] {
        with_type!(self, J => J::FRAMEWORK.objects)
    }

    /// Adds the kind to the kinds that `operator` manages.
    pub(crate) fn managed_by(self, operator: Operator) -> Operator {
        with_type!(self, J => operator.manage::<J>())
    }

    /// Returns true if the library's validation rejects a job of this kind.
    pub(crate) fn fails_validation(self, job: &Value) -> bool {
        fn check<J: TrainingJob + DeserializeOwned>(job: &Value) -> bool {
            let mut job = job.clone();
            // Anybody may write any status, and a job is not judged by it.
            if let Some(fields) = job.as_object_mut() {
                fields.remove("status");
            }
            let read = J::deserialize(&job);
            read.is_ok_and(|job| validate(&job, &Settings::default()).is_err())
        }
        with_type!(self, J => check::<J>(job))
    }
}
