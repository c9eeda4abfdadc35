//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_testing::snapshots;
use training_job_xgboost::XGBoostJob;

#[test]
fn examples() {
    snapshots::<XGBoostJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/xgboost",
        "../../snapshots/xgboost/examples",
    );
}
