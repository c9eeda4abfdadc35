//! Jobs under the real Volcano, coscheduling, Kueue and kube-scheduler, on simulated nodes. `make test-schedulers`
//! builds these programs and runs this test, which takes minutes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod built;
mod crowd;
mod examples;
mod gangs;
mod history;
mod jobs;
mod kueue;
mod node;
mod stage;
mod storm;
