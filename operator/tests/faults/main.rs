//! Faults that operators must tolerate, on a real API server. Each test covers a row of a matrix of faults, and its
//! name begins with the row's.
//!
//! B: responses. C: watches. D: the control plane. F: identity. G: a job's end. H: admission.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod b;
mod c;
mod d;
mod f;
mod g;
mod h;
#[path = "../rig/mod.rs"]
mod rig;
