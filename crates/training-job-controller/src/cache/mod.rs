//! The controller's view of the cluster: jobs and their children, from lists, watches and responses to its own
//! writes.
//!
//! The cache is synchronous. Its input is the data of lists, watches and responses; its output is a job with its
//! [`Observed`] children. The cost of a reconcile depends on the size of its job alone, not on the size of the
//! cluster.
//!
//! [`Observed`]: training_job::plan::observed::Observed

pub(super) mod child;
pub(super) mod children;
pub(super) mod jobs;
pub(super) mod list_epoch;
pub(super) mod partial_child;
pub(super) mod stored_job;

#[cfg(test)]
mod tests {
    mod children;
    mod jobs;
    mod spoiled;
}
