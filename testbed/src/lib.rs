//! Shared code of the tests of the library and of all kinds of job: a harness for the pure planner, a kind
//! of job without a framework, and the comparison with recordings of the Go operator. The feature `cluster` adds a
//! real control plane.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is the body of tests, and a panic is how a test fails"
)]

#[cfg(feature = "cluster")]
pub mod cluster;
mod environment;
pub mod group_job;
mod harness;
pub mod list_job;
mod recordings;
pub mod step_job;
mod toy;

pub use environment::{ConfigMaps, config_maps, environment};
pub use group_job::GroupJob;
pub use harness::{PlanHarness, PodHandle, Step, steps};
pub use list_job::ListJob;
pub use recordings::{compare_renders, compare_renders_with};
pub use step_job::StepJob;
pub use toy::{ELASTIC, PANICS, RETRIES, STEPS, ToyJob, ToyJobSpec};

use std::path::{Path, PathBuf};

use training_job::TrainingJob;
use training_job_testing::{check_definition, snapshots};

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("the package is a folder of the repository")
        .to_owned()
}

/// Checks the jobs in a folder of the repository: the definition of their kind accepts them, and they render as in this
/// folder of `snapshots/`.
///
/// # Panics
/// If they do not.
pub fn check_jobs<J: TrainingJob>(jobs: &str, rendered: &str) {
    assert_eq!(check_definition::<J>(repository(), jobs), [""; 0]);
    snapshots::<J>(repository(), jobs, &format!("snapshots/{rendered}"));
}
