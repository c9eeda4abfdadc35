//! Tests of JAXJobs, one module for each topic.

mod compat;
mod life;
mod snapshots;
