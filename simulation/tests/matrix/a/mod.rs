//! The operator's process.

mod deaths;
mod pauses;
mod poison;
