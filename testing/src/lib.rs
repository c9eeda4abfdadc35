//! What the tests of the library and of all kinds of job share: a world in which stories are played on the pure
//! core, a kind of job that belongs to no framework, and the comparison with recordings of the Go operator. With the
//! feature `cluster`, also a real control plane.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is the body of tests, and a panic is how a test fails"
)]

#[cfg(feature = "cluster")]
pub mod cluster;
pub mod defects;
mod environment;
mod pods;
mod recordings;
mod toy;
mod world;

pub use environment::{ConfigMaps, config_maps, environment};
pub use pods::{PodHandle, terminated};
pub use recordings::{Difference, compare_renders, compare_renders_with};
pub use toy::{ToyJob, ToyJobSpec};
pub use world::{Step, World, steps};
