//! Kueue: jobs that wait for their turn.

mod process;
mod queue;
mod ready;
mod stories;
mod webhook;
