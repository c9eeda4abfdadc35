//! Compares our objects of TFJobs with those of the Go operator v1.8.1 on a real API server. They must be equal byte
//! for byte, except for the differences of all kinds.

use training_job_tensorflow::TFJob;
use training_job_testbed::compare_renders;

#[test]
fn renders_are_the_go_operators() {
    let compared = compare_renders::<TFJob>("");
    assert_eq!(
        compared,
        2 * (3 + 6 + 2 + 3 + 2 + 1 + 4) + 1,
        "six jobs, and one refused"
    );
}
