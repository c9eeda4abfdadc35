//! Tests for who implements the trait (feature `testing`): plain functions for plain `#[test]`s. They make a runtime of
//! their own where they need one, so an author needs no Tokio.
//!
//! | file | has |
//! |---|---|
//! | `snapshots.rs` | [`snapshots`]: what each job gets, for reviewers |
//! | `definition.rs` | [`check_definition`]: whether the definition and its rules are right |
//! | `status.rs` | whether a status is read back as it was written |
//! | `cost.rs`, `estimate.rs`, `functions.rs`, `size.rs` | [`rule_costs`]: what an API server estimates that rules cost |
//! | `rules.rs` | rules evaluated on a job |
//! | `story.rs` | [`Story`]: a job's life on the in-memory API |
//! | `jobs.rs` | the jobs of a folder |

// What is here is called by tests, and a panic is how a test fails.
#![allow(clippy::panic, reason = "a panic is how a test fails")]

mod cost;
mod definition;
mod estimate;
mod functions;
mod jobs;
mod rules;
mod size;
mod snapshots;
mod status;
mod story;

pub use cost::{RuleCost, rule_costs};
pub use definition::check_definition;
pub use snapshots::snapshots;
pub use story::Story;
