//! Tests of the running controller: a real client sends real requests to the in-memory API, on a paused clock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod answers;
mod away;
mod costs;
mod crashes;
mod events;
mod gangs;
mod identity;
mod lives;
mod toys;
mod watches;
