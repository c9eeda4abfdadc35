//! The control plane for the tests with a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod api_server;
mod audit;
mod binaries;
mod child;
mod controllers;
mod end;
mod install;
mod kubelet;
mod objects;
mod programs;
mod service_accounts;
mod waiting;
