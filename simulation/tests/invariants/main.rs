//! Tests that violate each invariant.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod at_rest;
mod changes;
mod fixture;
mod gangs;
mod policies;
mod queue;
