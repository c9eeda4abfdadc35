//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_jax::JAXJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<JAXJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/jax",
        "../../snapshots/jax/examples",
    );
}
