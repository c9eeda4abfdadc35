//! Tests of whole jobs on this machine.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bad_manifest;
mod files;
mod panics;
