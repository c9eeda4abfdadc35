//! The life of a job.

mod edits;
mod ends;
mod times;
