//! Tests of MxJobs and TfJobs of mlkube.io, one module for each topic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod definition;
mod life;
mod snapshots;
