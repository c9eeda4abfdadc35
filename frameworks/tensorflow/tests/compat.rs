//! What the Go operator v1.8.1 made of TFJobs on a real API server, and what we make of them: the same
//! to the byte.

use std::path::Path;

use training_job_tensorflow::TFJob;
use training_job_testing::compare_renders;

#[test]
fn renders_are_the_go_operators() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat");
    let compared = compare_renders::<TFJob>(&recordings, &[]);
    assert_eq!(
        compared,
        2 * (3 + 6 + 2 + 3 + 2 + 1) + 1,
        "six jobs, and one refused"
    );
}
