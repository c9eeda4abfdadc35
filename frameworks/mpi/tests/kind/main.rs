//! Tests of MPIJobs, one module for each topic.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod compat;
mod definition;
mod life;
mod rights;
mod snapshots;
mod v2beta1;
