//! Jobs that train with real frameworks, by `training-operator local run` and on a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod cluster_training;
mod local_run;
