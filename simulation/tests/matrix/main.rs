//! The rows of the matrix of docs/reliability.md that can be simulated, each a test whose name begins with the
//! row's: a fault, everywhere where it can happen in small lives, and what must come of it. In all of them all
//! invariants hold.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod a;
mod b;
mod c;
mod d;
mod e;
mod f;
mod g;
mod h;
mod harness;
mod i;
mod j;
mod k;
