//! What is printed without a cluster is what a cluster gets.

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
mod same_objects;
