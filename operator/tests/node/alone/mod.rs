//! Disturbances of whole nodes, each at a time when no other test runs.

mod drain;
mod full_disk;
mod power_cut;
mod preemption;
mod programs;
