//! Checks that the definition and `validate` report the same errors.

use training_job_tensorflow::TFJob;
use training_job_testing::check_definition;

#[test]
fn it_takes_the_jobs_that_validate_takes() {
    assert_eq!(
        check_definition::<TFJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/tensorflow"),
        [""; 0]
    );
}

#[test]
fn it_takes_every_role() {
    assert_eq!(
        check_definition::<TFJob>(env!("CARGO_MANIFEST_DIR"), "../../operator/tests/tensorflow"),
        [""; 0]
    );
}
