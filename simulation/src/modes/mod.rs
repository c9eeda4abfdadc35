//! The modes of `sim`: one run, many runs, and measurements.

pub mod crowd;
pub mod exhaustive;
pub mod growth;
pub mod report;
pub mod run;
pub mod settle;
pub mod shrink;
pub mod threads;
