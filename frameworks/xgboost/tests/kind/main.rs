//! Tests of XGBoostJobs, one module for each topic.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod compat;
mod life;
mod snapshots;
mod testing;
