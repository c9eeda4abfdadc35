//! Checks that the definition and `validate` report the same errors.

use training_job_jax::JAXJob;
use training_job_testing::check_definition;

#[test]
fn the_definition_accepts_the_jobs_that_validate_accepts() {
    assert_eq!(
        check_definition::<JAXJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/jax"),
        [""; 0]
    );
}
