//! The checks of the fuzz targets, each a function from bytes. A panic is a finding.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a target reports a finding"
)]

pub mod job;
pub mod status;
pub mod watch;
