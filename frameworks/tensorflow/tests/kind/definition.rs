//! Checks that the definition and `validate` report the same errors.

use training_job_tensorflow::TFJob;
use training_job_testing::check_definition;

#[test]
fn the_definition_accepts_the_jobs_that_validate_accepts() {
    assert_eq!(
        check_definition::<TFJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/tensorflow"),
        [""; 0]
    );
}

#[test]
fn the_definition_accepts_every_role() {
    assert_eq!(
        check_definition::<TFJob>(env!("CARGO_MANIFEST_DIR"), "../../operator/tests/tensorflow"),
        [""; 0]
    );
}
