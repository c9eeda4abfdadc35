//! The whole operator against the in-memory API, on a clock of its own: nodes, users, the network and all
//! that can go wrong with them follow from one seed. The same seed gives the same run, to the byte.
//!
//! docs/reliability.md tells what is simulated and what must hold.

// A tool for tests: what cannot be is a bug in it, and it stops there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod call;
pub mod calm;
pub mod crowd;
pub mod exhaustive;
pub mod fault;
pub mod history;
pub mod invariants;
pub mod job;
pub mod kubelet;
pub mod lives;
pub mod network;
pub mod random;
pub mod report;
pub mod run;
pub mod settings;
pub mod shrink;
pub mod stream;
pub mod threads;
pub mod users;
pub mod wire;
pub mod workloads;
pub mod world;

/// Seeds that once broke something, one a line: the version of the settings, the seed, what it found.
pub const REGRESSIONS: &str = include_str!("../regressions.txt");
