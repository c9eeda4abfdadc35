//! The commands that need no cluster, and the repository's files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod cases;
mod chart;
mod convert;
mod crds;
mod docs;
mod docs_names;
mod house;
mod monitoring;
mod performance;
mod pod_rules;
mod promql;
mod readme;
mod release;
mod render;
mod snapshots;
mod support;
