//! Controllers for multi-framework training jobs on Kubernetes.

#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "memory")]
pub mod memory;
