//! A real API server that validates jobs by the definitions in `crds/`.

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
mod extensions;
mod gitops;
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
