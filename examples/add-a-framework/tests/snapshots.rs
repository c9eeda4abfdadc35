//! What the jobs get, for reviewers to read.

#[path = "../src/job.rs"]
#[allow(dead_code)]
mod job;

// region: test
#[test]
fn jobs() {
    training_job::testing::snapshots::<job::FarmJob>(env!("CARGO_MANIFEST_DIR"), "jobs", "snapshots");
}
// endregion: test
