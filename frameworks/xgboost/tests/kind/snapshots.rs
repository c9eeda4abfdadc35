//! The jobs of the repository: the definition accepts them, and they render as `snapshots/`, which reviewers read.

use training_job_testbed::check_jobs;
use training_job_xgboost::XGBoostJob;

#[test]
fn examples() {
    check_jobs::<XGBoostJob>("examples/xgboost", "xgboost/examples");
}
