//! The controller as it runs: real requests of a real client, answered by the in-memory API, on a
//! paused clock.

mod answers;
mod costs;
mod crashes;
mod identity;
mod kubelet;
mod lives;
mod network;
mod watches;
mod world;
