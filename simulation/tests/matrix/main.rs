//! The rows of the matrix in docs/maintainers/reliability.md that can be simulated. The name of each test starts with
//! the number of its row. A test injects a fault everywhere in a small workload and asserts the required result. All
//! invariants must hold.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod admission;
mod conflicts;
mod control_plane;
mod deaths;
mod deletes;
mod denials;
mod endings;
mod harness;
mod identity;
mod input;
mod job_edits;
mod losses;
mod nodes;
mod operators;
mod panics;
mod pauses;
mod pod_edits;
mod pod_ends;
mod responses;
mod sizes;
mod staleness;
mod times;
mod unreadable;
mod watches;
