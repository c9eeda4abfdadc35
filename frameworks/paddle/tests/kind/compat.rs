//! Compares our objects of PaddleJobs with those of the Go operator v1.8.1 on a real API server. They must be equal
//! byte for byte, except at the paths in [`DIFFERENCES`].

use training_job_paddle::PaddleJob;
use training_job_testbed::compare_renders;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
paddle-env | pods.job-worker-0.spec.containers[1].env | a variable that the user sets with the operator's stays twice there
paddle-env | pods.job-worker-1.spec.containers[1].env | a variable that the user sets with the operator's stays twice there
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    let compared = compare_renders::<PaddleJob>(DIFFERENCES);
    assert_eq!(compared, 53);
}
