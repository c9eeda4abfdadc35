//! Jobs that train with PyTorch, JAX, Paddle and TensorFlow. `training` covers the other frameworks. These need
//! downloads of 140 to 400 MB each, so `make test-frameworks` and `make test-tensorflow` run them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod cluster;
mod example;
mod local_run;
mod tensorflow;
