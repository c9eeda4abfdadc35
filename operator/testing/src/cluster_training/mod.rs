//! Real training on a real API server.

pub mod jobs;
pub mod trial;
