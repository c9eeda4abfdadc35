//! The operator and its clients on a real API server. Each test has a namespace of the shared control plane; one that
//! disturbs others, such as an operator for all namespaces, has a control plane of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod admission;
mod clients;
mod compat;
mod consumers;
mod cost;
mod election;
mod faults;
mod handover;
mod install;
mod kinds;
mod remote_shell;
mod renders;
mod rig;
mod stable_address;
mod testbed;
mod two_versions;
