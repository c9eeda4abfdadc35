//! The behavior of the controller under faults that need more than one fault of one call, and its costs without faults.
//! (The exhaustive mode injects each fault at each call.) A test asserts the required result, and that all invariants
//! hold. Each behavior has one test, here if the simulation can show it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

mod admission;
mod away;
mod conflicts;
mod control_plane;
mod costs;
mod deaths;
mod deletes;
mod denials;
mod endings;
mod gangs;
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
