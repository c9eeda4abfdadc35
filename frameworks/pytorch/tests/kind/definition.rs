//! Checks that the definition and `validate` report the same errors.

use training_job_pytorch::PyTorchJob;
use training_job_testing::check_definition;

#[test]
fn the_definition_rejects_the_jobs_that_validate_rejects() {
    assert_eq!(
        check_definition::<PyTorchJob>(env!("CARGO_MANIFEST_DIR"), "tests/invalid"),
        [""; 0]
    );
}
