//! Tests of PyTorchJobs, one module for each topic.

mod compat;
mod definition;
mod environment;
mod life;
mod snapshots;
