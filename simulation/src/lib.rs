//! The whole operator against the in-memory API, on a simulated clock. Nodes, users, the network and all faults follow
//! from one seed: the same seed gives the same run, to the byte.
//!
//! docs/simulation.md says how to read a failing seed, and how to add a fault, a workload or an invariant.
//!
//! * What a run is made of: [`scenario`], from [`config`], [`planned_job`], [`interventions`] and [`users`].
//! * What goes wrong: [`faults`].
//! * What runs: [`simulation`], with [`network`], [`kubelet`] and a gang scheduler.
//! * What must hold: [`invariants`] at each change, [`settle`] at the end.
//! * The modes of `sim`: [`run`] for one seed, [`shrink`], [`exhaustive`] with its [`workloads`], [`crowd`], [`growth`],
//!   [`lives`].
//!
//! A module uses only modules below it:
//!
//! ```text
//! main
//! shrink  exhaustive, threads > report  crowd  growth  lives
//! run     workloads
//! scenario, settle > simulation
//! config
//! invariants > network
//! interventions > users > planned_job   gang_scheduler > kubelet
//! faults  history
//! call  direct  job > job_type  random
//! ```

// A tool for tests: a state that cannot be is a bug in it, and a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod call;
pub mod config;
pub mod crowd;
pub mod direct;
pub mod exhaustive;
pub mod faults;
mod gang_scheduler;
pub mod growth;
pub mod history;
pub mod interventions;
pub mod invariants;
pub mod job;
pub mod job_type;
pub mod kubelet;
pub mod lives;
pub mod network;
pub mod planned_job;
pub mod random;
pub mod report;
pub mod run;
pub mod scenario;
pub mod settle;
pub mod shrink;
pub mod simulation;
pub mod threads;
pub mod users;
pub mod workloads;

/// Seeds that once violated an invariant, one a line: the version of what seeds mean, the seed, what it found.
pub const REGRESSIONS: &str = include_str!("../regressions.txt");
