//! Tests of MXJobs, one module for each topic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod bounds;
mod compact;
mod compat;
mod definition;
mod invalid;
mod life;
mod scheduler_name;
mod shapes;
mod snapshots;
mod status;
mod warned;
