//! Tests of TFJobs, one module for each topic.

mod compat;
mod life;
mod snapshots;
