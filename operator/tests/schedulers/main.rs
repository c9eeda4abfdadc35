//! Jobs under the real Volcano, coscheduling, Kueue and kube-scheduler, on simulated nodes. `make test-schedulers`
//! builds these programs and runs this test, which takes minutes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod built;
#[path = "../admission/corpus.rs"]
#[allow(dead_code, reason = "all manifests here are good")]
mod corpus;
mod crowd;
mod examples;
mod gangs;
mod history;
mod jobs;
mod kueue;
mod node;
#[path = "../program/mod.rs"]
#[allow(dead_code, reason = "the command line is other tests'")]
mod program;
#[path = "../rig/mod.rs"]
mod rig;
#[path = "../admission/same.rs"]
mod same;
mod stage;
mod storm;
#[path = "../../benches/load/process.rs"]
#[allow(dead_code, reason = "a benchmark needs more of it")]
mod usage;
