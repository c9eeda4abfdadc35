//! The types of jobs in the simulation.

use std::sync::LazyLock;

use serde_json::Value;
use training_job::offline;
use training_job::{Kind, ObjectDefinition, Settings};
use training_job_controller::Operator;
use training_job_jax::JAXJob;
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_testbed::{StepJob, ToyJob};
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
    /// A StepJob, whose roles are in fields and lists, and whose steps run one after the other.
    Steps,
}

/// The plurals of all kinds.
pub const PLURALS: [&str; 9] = [
    "mxjobs",
    "xgboostjobs",
    "tfjobs",
    "pytorchjobs",
    "paddlejobs",
    "mpijobs",
    "jaxjobs",
    "toyjobs",
    "stepjobs",
];

/// The kinds of all job types, in the order of [`PLURALS`].
static KINDS: LazyLock<[Kind; 9]> = LazyLock::new(|| {
    [
        Kind::of::<MXJob>(),
        Kind::of::<XGBoostJob>(),
        Kind::of::<TFJob>(),
        Kind::of::<PyTorchJob>(),
        Kind::of::<PaddleJob>(),
        Kind::of::<MPIJob>(),
        Kind::of::<JAXJob>(),
        Kind::of::<ToyJob>(),
        Kind::of::<StepJob>(),
    ]
});

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

    /// All kinds, and the one that has roles in lists.
    pub const ALL_KINDS_AND_STEPS: &[Self] = &[
        Self::Train,
        Self::Tune,
        Self::XgBoost,
        Self::TensorFlow,
        Self::PyTorch,
        Self::Elastic,
        Self::Paddle,
        Self::Mpi,
        Self::Jax,
        Self::Steps,
        Self::Steps,
        Self::Steps,
    ];

    /// Returns the type of a stored job, derived from its kind.
    pub fn of(job: &impl Json) -> Option<Self> {
        let kind = job.member("kind").as_str()?;
        let all = Self::ALL_KINDS_AND_STEPS.iter().chain([&Self::Toy]);
        all.copied().find(|job_type| job_type.kind() == kind)
    }

    fn as_kind(self) -> &'static Kind {
        let place = match self {
            Self::Train | Self::Tune => 0,
            Self::XgBoost => 1,
            Self::TensorFlow => 2,
            Self::PyTorch | Self::Elastic => 3,
            Self::Paddle => 4,
            Self::Mpi => 5,
            Self::Jax => 6,
            Self::Toy => 7,
            Self::Steps => 8,
        };
        &KINDS[place]
    }

    /// Returns the kind of the job type.
    pub fn kind(self) -> &'static str {
        self.as_kind().name()
    }

    /// Returns the API group of the kind.
    pub fn group(self) -> &'static str {
        &self.as_kind().resource.group
    }

    /// Returns the plural of the kind.
    pub fn plural(self) -> &'static str {
        &self.as_kind().resource.plural
    }

    /// Returns the name of the field that holds the replica specs, or an empty text if the kind has no such field.
    pub fn replica_specs_field(self) -> &'static str {
        self.as_kind().framework.roles_field
    }

    /// Returns the name of the main container.
    pub fn container(self) -> &'static str {
        // Some kinds use the first container, regardless of its name.
        match self.as_kind().framework.main_container {
            "" => "main",
            name => name,
        }
    }

    /// Returns the definitions of the objects that its jobs have beside pods and services.
    pub(crate) fn objects(self) -> &'static [ObjectDefinition] {
        self.as_kind().framework.objects
    }

    /// Adds the kind to the kinds that `operator` manages.
    pub(crate) fn managed_by(self, operator: Operator) -> Operator {
        operator.manage_kind(self.as_kind().clone())
    }

    /// Returns true if the library's validation rejects a job of this kind.
    pub(crate) fn fails_validation(self, job: &Value) -> bool {
        let mut job = job.clone();
        // Anybody may write any status, and a job is not judged by it.
        if let Some(fields) = job.as_object_mut() {
            fields.remove("status");
        }
        let invalid = offline::validate(self.as_kind(), &job, &Settings::default()).err();
        // An object that does not have a job's shape has one error without a path.
        invalid.is_some_and(|errors| errors.iter().all(|error| !error.path.is_empty()))
    }
}
