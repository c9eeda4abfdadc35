//! Tests of TFJobs, one module for each topic.

mod compat;
mod definition;
mod life;
mod snapshots;
