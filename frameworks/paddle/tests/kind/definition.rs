//! Checks that the definition and `validate` report the same errors.

use training_job_paddle::PaddleJob;
use training_job_testing::check_definition;

#[test]
fn the_definition_accepts_the_jobs_that_validate_accepts() {
    assert_eq!(
        check_definition::<PaddleJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/paddle"),
        [""; 0]
    );
}
