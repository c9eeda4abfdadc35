//! Compares the rendered objects with `snapshots/` in the repository, which reviewers read.

use training_job_mpi::MPIJob;
use training_job_testing::snapshots;

#[test]
fn examples() {
    snapshots::<MPIJob>(
        env!("CARGO_MANIFEST_DIR"),
        "../../examples/mpi",
        "../../snapshots/mpi/examples",
    );
}
