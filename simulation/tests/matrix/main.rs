//! The rows of the matrix in docs/maintainers/reliability.md that can be simulated. The name of each test starts with
//! the number of its row. A test injects a fault everywhere in a small workload and asserts the required result. All
//! invariants must hold.

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
