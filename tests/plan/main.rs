//! Tests of the pure planner: lives of jobs, and properties of any job. Each module covers a topic. `#n` is the
//! number of the defect of the Go operator v1.8.1 that a test rules out here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod accelerators;
mod annotations;
mod bounds;
mod budget;
mod causes;
mod compact;
mod containers;
mod crash;
mod disruption;
mod edits;
mod endings;
mod followers;
mod forms;
mod gang;
mod harness;
mod last_words;
mod limits;
mod lives;
mod panics;
mod pauses;
mod policies;
mod ports;
mod properties;
mod refused;
mod reports;
mod restarts;
mod scaling;
mod scopes;
mod sidecars;
mod stalls;
mod success;
mod suspension;
mod time;
mod waits;
