//! What the Go operator v1.8.1 made of PaddleJobs on a real API server, and what we make of them: the same to the
//! byte.

use training_job_paddle::PaddleJob;
use training_job_testing::compare_renders;

#[test]
fn renders_are_the_go_operators() {
    let compared = compare_renders::<PaddleJob>(&[]);
    assert_eq!(compared, 0);
}
