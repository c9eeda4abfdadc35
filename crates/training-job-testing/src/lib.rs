//! Tests for authors of a kind of training job: plain functions for plain `#[test]`s. They create a
//! runtime where they need one, so an author needs no Tokio.
//!
//! | file | contents |
//! |---|---|
//! | `snapshots.rs` | [`snapshots`]: the objects of each job, for reviewers |
//! | `definition.rs` | [`check_definition`]: checks the definition and its rules |
//! | `status.rs` | checks that a status is decoded as it was encoded |
//! | `story.rs` | [`Story`]: a job's life on the in-memory API |
//! | `pod_script.rs` | [`PodScript`]: the statuses that kubelets write |
//! | `jobs.rs` | reads the jobs of a folder |

// Tests call this module, and a test fails by a panic.
#![expect(clippy::panic, reason = "a panic is how a test fails")]

mod definition;
mod jobs;
mod pod_script;
mod rendered;
mod snapshots;
mod status;
mod story;

pub use definition::check_definition;
pub use pod_script::PodScript;
pub use snapshots::snapshots;
pub use story::Story;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
