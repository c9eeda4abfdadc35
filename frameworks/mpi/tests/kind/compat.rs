//! Compares our objects of MPIJobs with those of the Go operator v1.8.1 on a real API server. They must be equal byte
//! for byte, except at the paths in [`DIFFERENCES`].

use training_job_mpi::MPIJob;
use training_job_testbed::compare_renders;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
* | pods.*launcher.spec.containers[0].env | its names are there, too: without them it runs all ranks in the launcher
* | pods.*.spec.containers[0].resources.requests | the API server makes requests of limits
* | pods.*.labels.mpi-job- | readers of the mpi-operator's pods find these, too
* | pods.*worker-*.spec.containers[0].command | a worker ends on SIGTERM
* | pods.*worker-*.spec.containers[0].args | a worker ends on SIGTERM
* | pods.*launcher.spec.initContainers[*].securityContext | it fits the pod security standard restricted
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    assert_eq!(compare_renders::<MPIJob>(DIFFERENCES), 52);
}
