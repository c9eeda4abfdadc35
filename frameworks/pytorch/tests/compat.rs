//! What the Go operator v1.8.1 made of PyTorchJobs on a real API server, and what we make of them: the
//! same to the byte, but for the places in [`DIFFERENCES`].

use training_job_pytorch::PyTorchJob;
use training_job_testing::{Difference, compare_renders};

/// Everything that differs. An entry that matches nothing fails the test.
const DIFFERENCES: &[Difference<'_>] = &[];

#[test]
fn renders_are_the_go_operators_but_where_we_say_so() {
    let compared = compare_renders::<PyTorchJob>(DIFFERENCES);
    assert_eq!(compared, 0);
}
