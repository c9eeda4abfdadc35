//! A real API server, told by the definitions in `crds/` what to refuse.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod api;
mod bad;
mod corpus;
mod costs;
mod edits;
mod go_types;
mod good;
mod left;
mod operator;
#[path = "../program/mod.rs"]
mod program;
mod released;
mod same;
mod standalone;
mod status;
mod stored;
