//! Controllers for multi-framework training jobs on Kubernetes.

pub mod api;
mod job;
pub mod render;
mod replicas;
mod topology;
pub mod validate;

#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "memory")]
pub mod memory;

pub use job::{Framework, Milestone, RoleKind, TrainingJob};
pub use replicas::{Outcome, ReplicaState, Replicas, RoleReplicas};
pub use topology::{Replica, Role, Topology};
pub use validate::{FieldError, FieldErrors, Settings, ValidJob, validate};
