//! The controller as it runs: real requests of a real client, answered by the in-memory API, on a
//! paused clock.

mod costs;
mod crashes;
mod kubelet;
mod lives;
mod network;
mod world;
