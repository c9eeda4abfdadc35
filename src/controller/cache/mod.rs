//! What the controller knows of the cluster: jobs and their children, from lists, watches and answers to its own writes.
//!
//! Synchronous: what a list or a watch says and what a call was answered with goes in; a job and its [`Observed`]
//! children come out. A reconcile costs the job's own size, whatever else the cluster holds.
//!
//! [`Observed`]: crate::plan::observed::Observed

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
}
