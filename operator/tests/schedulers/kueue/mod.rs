//! Kueue: jobs that wait for their turn.

mod crowd;
pub(crate) mod process;
mod queue;
mod ready;
mod stories;
mod storm;
mod topology;
mod webhook;
