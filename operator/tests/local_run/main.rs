//! `training-operator local run` as users run it: the binary, real MXNet, TVM, XGBoost and Open MPI, and real
//! signals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod clean_up;
mod collective;
mod compact;
mod kill;
mod launcher;
mod limits;
mod manifest;
mod mlkube;
mod options;
mod ordinary_user;
mod processes;
mod run;
mod side_by_side;
mod signals;
mod terminal;
mod training;
mod trial;
#[path = "../venv/mod.rs"]
mod venv;
