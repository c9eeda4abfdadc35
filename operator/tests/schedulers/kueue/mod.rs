//! Kueue: jobs that wait in a queue.

mod crowd;
mod plain_pods;
pub(crate) mod process;
mod queue;
mod ready;
mod stories;
mod storm;
mod topology;
mod webhook;
