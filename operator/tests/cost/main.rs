//! The cost of jobs for the API server, counted in its audit log by the operator's user.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod bill;
mod lives;
mod quiet;
#[path = "../rig/mod.rs"]
mod rig;
