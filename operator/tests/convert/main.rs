//! Converts jobs of older versions and operators to current ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod always_valid;
mod cases;
#[path = "../program/mod.rs"]
mod program;
mod same_pods;
