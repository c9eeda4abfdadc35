//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job::testing::snapshots;
use training_job_jax::JAXJob;

#[test]
fn examples() {
    snapshots::<JAXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/jax",
        "../../snapshots/jax/examples",
    );
}
