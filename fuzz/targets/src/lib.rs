//! What each fuzz target does with its bytes. A panic is a finding.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a target tells of a finding"
)]

pub mod job;
pub mod status;
pub mod watch;
