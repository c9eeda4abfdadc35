//! Real training on a real API server. `training-operator run` and `training-operator local node` are separate
//! processes, and MXNet, TVM, XGBoost and Open MPI run in the pods.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod changes;
mod jobs;
mod launcher;
mod losses;
#[path = "../local_run/manifest.rs"]
#[allow(dead_code, reason = "local runs change more in their manifests")]
mod manifest;
#[path = "../install/manifests.rs"]
#[allow(dead_code, reason = "what the permissions are is another test's")]
mod manifests;
mod node;
#[path = "../local_run/processes.rs"]
#[allow(dead_code, reason = "here each pod has one process")]
mod processes;
mod training;
mod trial;
#[path = "../venv/mod.rs"]
mod venv;
