//! The setup of a simulation, and small jobs.

use serde_json::Value;
use training_job::GangScheduler;

use crate::faults::PodFate;
use crate::invariants::AllowedStaleness;
use crate::world::job;
use crate::world::job_type::JobType;
use crate::world::kubelet::PodFates;

/// The setup of a simulation.
pub struct Setup {
    /// The fates of pods.
    pub pod_fates: PodFates,
    /// The job types whose kinds the operators manage. [`Simulation::jobs`](super::Simulation::jobs) and similar
    /// methods use the first.
    pub job_types: &'static [JobType],
    /// The number of jobs that an operator reconciles concurrently.
    pub concurrency: usize,
    /// True if the clocks of nodes differ from that of the cluster by up to five minutes.
    pub node_clocks_differ: bool,
    /// The allowed age of the state that operators act on.
    pub staleness: AllowedStaleness,
    /// The gang scheduler that is configured in the operators, and that binds the pods.
    pub gang_scheduler: Option<GangScheduler>,
}

impl Setup {
    /// Returns a setup with only MXJobs, a concurrency of sixteen, and pods with these fates. The allowed staleness
    /// is large, because tests assert the effects of a fault themselves. Only random runs need a precise limit.
    pub fn mxjobs(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        Self {
            pod_fates: Box::new(pod_fates),
            job_types: JobType::MXJOBS,
            concurrency: 16,
            node_clocks_differ: false,
            staleness: AllowedStaleness {
                of_others: 600_000,
                of_own: 0,
            },
            gang_scheduler: None,
        }
    }

    /// Returns the same setup with ToyJobs.
    pub fn toyjobs(pod_fates: impl Fn(&str, u32) -> PodFate + Send + Sync + 'static) -> Self {
        Self {
            job_types: &[JobType::Toy],
            ..Self::mxjobs(pod_fates)
        }
    }
}

/// Returns the first job type of each kind.
pub(super) fn of_different_kinds(types: &'static [JobType]) -> impl Iterator<Item = JobType> {
    let is_first = |at: usize, job_type: &JobType| types[..at].iter().all(|t| t.kind() != job_type.kind());
    let kinds = types.iter().enumerate();
    kinds
        .filter(move |(at, job_type)| is_first(*at, job_type))
        .map(|(_, job_type)| *job_type)
}

/// Returns an MXJob for training with these roles and numbers of replicas, all with restart policy ExitCode.
pub fn train(name: &str, roles: &[(&str, i32)]) -> Value {
    job::new(JobType::Train, name, roles, "ExitCode")
}

/// One scheduler, one server and two workers.
pub const SMALL: [(&str, i32); 3] = [("Scheduler", 1), ("Server", 1), ("Worker", 2)];

/// Merges `patch` into the spec of `job`, and returns the job.
pub fn with_spec(mut job: Value, patch: Value) -> Value {
    json_patch::merge(&mut job["spec"], &patch);
    job
}
