//! The rows of the matrix in docs/reliability.md that can be simulated. The name of each test begins with the row's. A
//! test injects a fault everywhere in a small workload and asserts what must come of it; all invariants must hold.

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
