//! Gang schedulers bind all pods of a job, or none.

mod crowd;
mod launcher;
pub(crate) mod process;
mod stage;
mod stories;
mod storm;
mod volcano;
