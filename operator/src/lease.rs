//! The Lease for leader election.

/// The name of the Lease. It is the Go operator's, so that the two never reconcile jobs at the same time.
pub(crate) const LEASE: &str = "1ca428e5.training-operator.kubeflow.org";
