//! Checks that the definition and `validate` report the same errors.

use training_job::testing::check_definition;
use training_job_jax::JAXJob;

#[test]
fn it_takes_the_jobs_that_validate_takes() {
    assert_eq!(
        check_definition::<JAXJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/jax"),
        [""; 0]
    );
}
