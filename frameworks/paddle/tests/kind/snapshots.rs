//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_paddle::PaddleJob;
use training_job_testing::snapshots;

#[test]
fn examples() {
    snapshots::<PaddleJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/paddle",
        "../../snapshots/paddle/examples",
    );
}
