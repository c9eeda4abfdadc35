//! `training-operator run` as a process: leader election, flags, signals, health and metrics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod candidates;
mod flags;
mod leaders;
mod pages;
#[path = "../rig/mod.rs"]
mod rig;
mod signals;
