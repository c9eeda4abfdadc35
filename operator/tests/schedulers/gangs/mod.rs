//! Gang schedulers: all pods of a job are bound, or none.

mod crowd;
mod launcher;
pub(crate) mod process;
mod stage;
mod stories;
mod storm;
mod volcano;
