//! Tests of PaddleJobs, one module for each topic.

mod compat;
mod definition;
mod life;
mod snapshots;
