//! What people use to deal with jobs, on a real API server: kubectl and the Python SDK.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod kubectl;
mod sdk;
mod stage;
