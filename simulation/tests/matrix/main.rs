//! The rows of the matrix in docs/maintainers/reliability.md that can be simulated and need more than one fault of one
//! call. (The exhaustive mode injects each fault at each call.) The name of each test starts with the id of its row. A
//! test asserts the required result, and that all invariants hold.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

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
