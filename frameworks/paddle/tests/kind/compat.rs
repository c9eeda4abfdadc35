//! Compares our objects of PaddleJobs with those of the Go operator v1.8.1 on a real API server. They must be equal
//! byte for byte, except at the paths in [`DIFFERENCES`].

use training_job_paddle::PaddleJob;
use training_job_testbed::{Difference, compare_renders};

/// All differences. An entry that matches nothing fails the test.
const DIFFERENCES: &[Difference<'_>] = &[
    ("paddle-env", "pods.job-worker-0.spec.containers[1].env", TWICE),
    ("paddle-env", "pods.job-worker-1.spec.containers[1].env", TWICE),
];

const TWICE: &str = "a variable that the user sets with the operator's stays twice there";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    let compared = compare_renders::<PaddleJob>(DIFFERENCES);
    assert_eq!(compared, 53);
}
