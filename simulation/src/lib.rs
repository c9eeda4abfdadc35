//! Runs the whole operator against the in-memory API, on a simulated clock. Nodes, users, the network and all faults
//! are derived from one seed: the same seed gives the same run, byte for byte.
//!
//! docs/maintainers/simulation.md describes how to read a failing seed, and how to add a fault, a workload or an
//! invariant.
//!
//! * [`scenario`]: the input of a run, drawn from a seed, or a workload.
//! * [`faults`]: the faults of calls, watches, the cluster and pods.
//! * [`world`]: nodes, a gang scheduler and the network; the JSON of jobs and pods.
//! * [`invariants`]: the checks at each change and at the end.
//! * [`simulation`]: the cluster with its operators.
//! * [`modes`]: one run, shrinking, the exhaustive mode, crowds, and measurements.
//!
//! A module uses only modules below it:
//!
//! ```text
//! main
//! modes
//! scenario   simulation
//! invariants
//! world
//! faults
//! call  random
//! ```

#![expect(
    clippy::unwrap_used,
    reason = "this is a test tool: an impossible state is a bug in the tool"
)]

pub mod call;
pub mod faults;
pub mod invariants;
pub mod modes;
pub mod random;
pub mod scenario;
pub mod simulation;
pub mod world;

/// Seeds that once violated an invariant, one per line: the seed version, the seed, and the violation.
pub const REGRESSIONS: &str = include_str!("../regressions.txt");
