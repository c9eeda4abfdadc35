//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_jax::JAXJob;
use training_job_testing::snapshots;

#[test]
fn examples() {
    snapshots::<JAXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/jax",
        "../../snapshots/jax/examples",
    );
}
