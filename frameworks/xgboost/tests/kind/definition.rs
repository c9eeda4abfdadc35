//! Checks that the definition and `validate` report the same errors.

use training_job_testing::check_definition;
use training_job_xgboost::XGBoostJob;

#[test]
fn the_definition_accepts_the_jobs_that_validate_accepts() {
    assert_eq!(
        check_definition::<XGBoostJob>(env!("CARGO_MANIFEST_DIR"), "../../examples/xgboost"),
        [""; 0]
    );
}
