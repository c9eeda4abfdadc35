//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_xgboost::XGBoostJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<XGBoostJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/xgboost",
        "../../snapshots/xgboost/examples",
    );
}
