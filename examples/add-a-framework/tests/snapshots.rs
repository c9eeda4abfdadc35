//! Snapshots of what the jobs create, for review, and a check of the definition.

use farm_operator::job;

// region: test
#[test]
fn jobs() {
    training_job_testing::snapshots::<job::FarmJob>(env!("CARGO_MANIFEST_DIR"), "jobs", "snapshots");
}
// endregion: test

// region: definition
#[test]
fn definition() {
    let uncovered =
        training_job_testing::check_definition::<job::FarmJob>(env!("CARGO_MANIFEST_DIR"), "jobs");
    assert_eq!(uncovered, [""; 0], "rejected by validate but by no CEL rule");
}
// endregion: definition
