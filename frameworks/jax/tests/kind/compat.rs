//! Compares our objects of JAXJobs with those of the Go operator v1.9.0 on a real API server. They must be equal byte
//! for byte, except at the paths in [`DIFFERENCES`].

use training_job_jax::JAXJob;
use training_job_testbed::compare_renders;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
jax-env | pods.job-worker-0.spec.containers[1].env | a variable that the user sets with the operator's stays twice there
jax-env | pods.job-worker-1.spec.containers[1].env | a variable that the user sets with the operator's stays twice there
jax-simple | pods.jaxjob-simple-worker-0.spec.containers[0].imagePullPolicy | recordings have no value that the API server would fill in; the job has it
jax-simple | pods.jaxjob-simple-worker-1.spec.containers[0].imagePullPolicy | recordings have no value that the API server would fill in; the job has it
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    let compared = compare_renders::<JAXJob>(DIFFERENCES);
    assert_eq!(compared, 33);
}
