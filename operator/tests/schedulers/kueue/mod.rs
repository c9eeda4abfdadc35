//! Kueue: jobs that wait in a queue.

mod crowd;
pub(crate) mod process;
mod queue;
mod ready;
mod stories;
mod storm;
mod topology;
mod webhook;
