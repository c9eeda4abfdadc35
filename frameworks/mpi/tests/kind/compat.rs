//! Compares our objects of MPIJobs with those of the Go operator v1.8.1 on a real API server. They must be equal byte
//! for byte, except at the paths in [`DIFFERENCES`].

use training_job_mpi::MPIJob;
use training_job_testbed::{Difference, compare_renders};

/// All differences. An entry that matches nothing fails the test.
const DIFFERENCES: &[Difference<'_>] = &[
    ("*", "pods.*launcher.spec.containers[0].env", OPEN_MPI_5),
    ("*", "pods.*.spec.containers[0].resources.requests", DEFAULT),
    ("*", "pods.*.labels.mpi-job-", ALIASES),
    ("*", "pods.*worker-*.spec.containers[0].command", SLEEP),
    ("*", "pods.*worker-*.spec.containers[0].args", SLEEP),
    (
        "*",
        "pods.*launcher.spec.initContainers[*].securityContext",
        CONFINED,
    ),
];

const ALIASES: &str = "readers of the mpi-operator's pods find these, too";
const SLEEP: &str = "a worker ends on SIGTERM";
const CONFINED: &str = "it fits the pod security standard restricted";

const OPEN_MPI_5: &str = "its names are there, too: without them it runs all ranks in the launcher";
const DEFAULT: &str = "the API server makes requests of limits";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    assert_eq!(compare_renders::<MPIJob>(DIFFERENCES), 52);
}
