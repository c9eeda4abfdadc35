//! What the Go operator v1.9.0 made of JAXJobs on a real API server, and what we make of them: the same to the
//! byte.

use training_job_jax::JAXJob;
use training_job_testing::compare_renders;

#[test]
fn renders_are_the_go_operators() {
    let compared = compare_renders::<JAXJob>(&[]);
    assert_eq!(compared, 0);
}
