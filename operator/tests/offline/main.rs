//! The commands that need no cluster, and the repository's files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod bad_input;
mod chart;
mod ci;
mod completions;
mod convert;
mod crds;
mod diff;
mod docs;
mod docs_names;
mod explain;
mod house;
mod imports;
mod manual;
mod monitoring;
mod new_job;
mod new_kind;
mod performance;
mod pod_rules;
mod promql;
mod readme;
mod release;
mod render;
mod smoke_test;
mod snapshot;
mod snapshots;
mod support;
mod validate;
