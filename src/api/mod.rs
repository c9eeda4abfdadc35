//! The types on the wire that every `kubeflow.org/v1` training job shares.
//!
//! Decoding is lenient: objects with nulls, odd casing or unknown policy names, as older clients stored them, decode
//! without an error, and [validation](crate::validate()) reports their errors. The CRD schema ([`schema`]) is strict.

mod job_policy;
pub mod labels;
mod objects_only;
mod policy;
mod progress;
mod replica;
mod run_policy;
mod salvage;
pub mod schema;
mod status;
mod variable;

pub(crate) use job_policy::COMMON_CONDITIONS;
pub use job_policy::{
    ExitCodeOperator, FailureAction, FailurePolicy, FailureRule, JobSuccessPolicy, MAX_CONDITIONS,
    MAX_EXIT_CODES, MAX_POLICY_ROLES, MAX_RESTARTS_IN_WINDOW, MAX_RULES, OnExitCodes, OnPodCondition,
    SuccessOperator,
};
pub use policy::{CleanPodPolicy, Layout, RestartPolicy, RestartScope, SuccessPolicy, Word};
pub use progress::{
    MAX_PATTERN_BYTES, MIN_STALLED_AFTER_SECONDS, ProgressPolicy, ProgressStatus, StallAction,
    WatchedReplicas,
};
pub use replica::{MAX_REPLICAS, ReplicaSpec, ReplicaSpecs};
pub use run_policy::{RunPolicy, SchedulingPolicy};
pub(crate) use salvage::{MAX_COUNT, is_writable};
pub use salvage::{STATUS_FIELDS, Salvaged};
pub use status::{
    Backoff, ConditionStatus, ConditionType, FailureRecord, JobCondition, JobStatus, Recovery, ReplicaStatus,
};
pub use variable::variable;
