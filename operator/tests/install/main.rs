//! Installs the shipped manifests on a real API server, and runs the operator as their service account.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod gangs;
mod launcher_rights;
mod life;
mod manifests;
mod mpi;
mod namespace_admin;
mod overlays;
mod permissions;
