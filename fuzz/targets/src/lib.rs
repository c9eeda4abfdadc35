//! The checks of the fuzz targets. Each check is a function from bytes, and a panic is a finding.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a target reports a finding"
)]

pub mod job;
pub mod status;
pub mod watch;
