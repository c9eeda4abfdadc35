//! What operators must get over, on a real API server: the rows of a matrix of faults, each a test whose
//! name begins with the row's.
//!
//! B: answers. C: watches. D: the control plane. F: identity. G: a job's end. H: admission.

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
