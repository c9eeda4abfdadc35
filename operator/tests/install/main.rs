//! The shipped manifests on a real API server, and the operator as the service account they make.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod gangs;
mod life;
mod manifests;
mod mpi;
mod overlays;
mod permissions;
