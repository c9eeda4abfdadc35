//! What the Go operator v1.8.1 made of MPIJobs on a real API server, and what we make of them: the same to the byte, but
//! for the places in [`DIFFERENCES`].

use training_job_mpi::MPIJob;
use training_job_testing::{Difference, compare_renders};

/// Everything that differs. An entry that matches nothing fails the test.
const DIFFERENCES: &[Difference<'_>] = &[
    ("*", "pods.*launcher.spec.containers[0].env", OPEN_MPI_5),
    ("*", "pods.*.spec.containers[0].resources.requests", DEFAULT),
];

const OPEN_MPI_5: &str = "its names are there, too: without them it runs all ranks in the launcher";
const DEFAULT: &str = "the API server makes requests of limits";

#[test]
fn renders_are_the_go_operators_but_where_we_say_so() {
    assert_eq!(compare_renders::<MPIJob>(DIFFERENCES), 52);
}
