//! Stories of jobs' lives, played on the pure core, and what holds of any job. One module for each chapter; `#n` names
//! the defect of the Go operator v1.8.1 that a story shows not to be here.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accelerators;
mod bounds;
mod budget;
mod causes;
mod compact;
mod crash;
mod disruption;
mod edits;
mod endings;
mod followers;
mod gang;
mod policies;
mod ports;
mod properties;
mod reports;
mod restarts;
mod scaling;
mod scopes;
mod success;
mod suspension;
mod time;
mod world;
