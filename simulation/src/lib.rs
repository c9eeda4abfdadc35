//! Runs the whole operator against the in-memory API, on a simulated clock. Nodes, users, the network and all faults
//! are derived from one seed: the same seed gives the same run, byte for byte.
//!
//! docs/maintainers/simulation.md describes how to read a failing seed, and how to add a fault, a workload or an
//! invariant.
//!
//! * The parts of a run: [`scenario`], from [`config`], [`planned_job`], [`interventions`] and [`users`].
//! * The faults: [`faults`].
//! * The running parts: [`simulation`], with [`network`], [`kubelet`] and a gang scheduler.
//! * The checks: [`invariants`] at each change, [`settle`] at the end.
//! * The modes of `sim`: [`run`] for one seed, [`shrink`], [`exhaustive`] with its [`workloads`], [`crowd`],
//!   [`growth`], [`lives`].
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

// This crate is a test tool: an impossible state is a bug in the tool, so it may panic.
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

/// Seeds that once violated an invariant, one per line: the seed version, the seed, and the violation.
pub const REGRESSIONS: &str = include_str!("../regressions.txt");
