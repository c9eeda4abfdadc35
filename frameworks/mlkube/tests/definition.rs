//! The definitions say what validation says.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use training_job::testing::check_definition;
use training_job_mlkube::{MxJob, TfJob};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn they_take_the_jobs_that_validate_takes() {
    for jobs in ["../../examples/legacy", "../../operator/tests/mlkube"] {
        assert_eq!(check_definition::<MxJob>(HERE, jobs), [""; 0]);
        assert_eq!(check_definition::<TfJob>(HERE, jobs), [""; 0]);
    }
}

/// What else they take is told by validation.
#[test]
fn they_refuse_bad_jobs_in_the_same_words() {
    assert_eq!(check_definition::<MxJob>(HERE, "tests/bad"), [""; 0]);
    assert_eq!(check_definition::<TfJob>(HERE, "tests/bad"), [""; 0]);
}
