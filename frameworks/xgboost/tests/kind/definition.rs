//! Checks that the definition and `validate` report the same errors.

use training_job_testing::check_definition;
use training_job_xgboost::XGBoostJob;

#[test]
fn it_takes_the_jobs_that_validate_takes() {
    assert_eq!(
        check_definition::<XGBoostJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/xgboost"),
        [""; 0]
    );
}
