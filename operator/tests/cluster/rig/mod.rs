//! Shared by the tests with a real API server: operators and jobs for them.

pub(crate) mod jobs;
pub(crate) mod stage;
