//! The output of commands without a cluster equals the objects in a cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod cluster_diff;
mod compact;
#[path = "../program/mod.rs"]
mod program;
mod restricted;
mod same_objects;
