//! Kueue: jobs that wait for their turn.

pub(crate) mod process;
mod queue;
mod ready;
mod stories;
mod storm;
mod webhook;
