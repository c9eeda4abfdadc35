//! The Helm chart under the real Helm 3 and 4: lints, renders, and releases on a real API server; and a chart with a
//! job on `local cluster`. `make test-helm` builds
//! both and runs this test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod adoption;
mod differences;
mod helm;
mod hook;
mod local_cluster;
mod namespace_admin;
mod permissions;
mod release;
mod renders;
mod upgrades;
mod values;
