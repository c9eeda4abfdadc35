//! Gang schedulers: all pods of a job are bound, or none.

mod process;
mod stage;
mod stories;
mod volcano;
