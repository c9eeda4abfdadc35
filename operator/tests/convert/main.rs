//! Jobs of older versions and operators become today's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod cases;
#[path = "../program/mod.rs"]
mod program;
mod same_pods;
