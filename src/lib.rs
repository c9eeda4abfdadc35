//! Controllers for multi-framework training jobs on Kubernetes.

pub mod api;
pub mod controller;
mod job;
pub mod observed;
pub mod plan;
pub mod render;
mod replicas;
mod topology;
pub mod validate;

#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "memory")]
pub mod memory;

pub use controller::{Operator, Options};
pub use job::{Framework, Milestone, RoleKind, TrainingJob};
pub use plan::{Plan, plan};
pub use replicas::{Outcome, ReplicaState, Replicas, RoleReplicas};
pub use topology::{Replica, Role, Topology};
pub use validate::{FieldError, FieldErrors, Settings, ValidJob, validate};
