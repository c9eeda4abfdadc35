//! What jobs get, for reviewers to read: `snapshots/` in the repository.

use training_job::testing::snapshots;
use training_job_mpi::MPIJob;

/// The jobs that people start from.
#[test]
fn examples() {
    snapshots::<MPIJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/mpi",
        "../../snapshots/mpi/examples",
    );
}
