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
pub mod pod;
