//! The clients of users on a real API server: kubectl and the Python SDK.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod applied;
mod kubectl;
mod sdk;
mod stage;
