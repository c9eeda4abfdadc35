//! What tests with a real API server share: operators to look at, and jobs for them.

#![allow(dead_code, reason = "not every test program needs all")]

pub(crate) mod jobs;
pub(crate) mod operator;
pub(crate) mod stage;
