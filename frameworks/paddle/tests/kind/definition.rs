//! Checks that the definition and `validate` report the same errors.

use training_job_paddle::PaddleJob;
use training_job_testing::check_definition;

#[test]
fn it_takes_the_jobs_that_validate_takes() {
    assert_eq!(
        check_definition::<PaddleJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/paddle"),
        [""; 0]
    );
}
