//! Compares our objects of XGBoostJobs with those of the Go operator v1.8.1 on a real API server. They must be equal
//! byte for byte, except at the paths in [`DIFFERENCES`].

use training_job_testbed::compare_renders;
use training_job_xgboost::XGBoostJob;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
xgb-train | pods.xgboost-dist-iris-test-train-master-0.spec.containers[0].imagePullPolicy | recordings have no value that the API server would fill in; the job has it
xgb-train | pods.xgboost-dist-iris-test-train-worker-0.spec.containers[0].imagePullPolicy | recordings have no value that the API server would fill in; the job has it
xgb-train | pods.xgboost-dist-iris-test-train-worker-1.spec.containers[0].imagePullPolicy | recordings have no value that the API server would fill in; the job has it
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    let compared = compare_renders::<XGBoostJob>(DIFFERENCES);
    assert_eq!(
        compared,
        2 * (3 + 1 + 3 + 3) + 1,
        "two jobs of three replicas, one of one, one refused"
    );
}
