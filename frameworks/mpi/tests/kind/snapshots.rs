//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job::testing::snapshots;
use training_job_mpi::MPIJob;

#[test]
fn examples() {
    snapshots::<MPIJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/mpi",
        "../../snapshots/mpi/examples",
    );
}
