//! Shared by the tests with a real API server: operators and jobs for them.

#![allow(dead_code, reason = "not every test program needs all")]

pub(crate) mod jobs;
pub(crate) mod operator;
pub(crate) mod stage;
