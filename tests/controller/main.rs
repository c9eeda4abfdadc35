//! The controller as it runs: real requests of a real client, answered by the in-memory API, on a
//! paused clock.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod costs;
mod crashes;
mod events;
mod gangs;
mod identity;
mod lives;
mod toys;
mod watches;
