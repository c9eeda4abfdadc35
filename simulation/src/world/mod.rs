//! The parts of a simulated cluster: the JSON of jobs and pods, nodes, a gang scheduler, and the network between
//! operators and the API server.

pub mod direct;
pub(crate) mod gang_scheduler;
pub mod history;
pub mod job;
pub mod job_type;
pub mod json;
pub mod kubelet;
pub mod network;
pub(crate) mod output;
pub mod pod;

/// The start time of a simulation in seconds, 2030-01-01T00:00:00Z.
pub(crate) const START_SECOND: i64 = 1_893_456_000;
