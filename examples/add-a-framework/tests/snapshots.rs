//! What the jobs get, for reviewers to read, and whether the definition is right.

#[path = "../src/job.rs"]
#[allow(dead_code)]
mod job;

// region: test
#[test]
fn jobs() {
    training_job::testing::snapshots::<job::FarmJob>(env!("CARGO_MANIFEST_DIR"), "jobs", "snapshots");
}
// endregion: test

// region: definition
#[test]
fn definition() {
    let uncovered =
        training_job::testing::check_definition::<job::FarmJob>(env!("CARGO_MANIFEST_DIR"), "jobs");
    assert_eq!(uncovered, [""; 0], "rejected by validate but by no rule");
}
// endregion: definition
