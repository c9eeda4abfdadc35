//! Compares our objects of MPIJobs with those of the Go operator v1.8.1 (v1) and of mpi-operator v0.8.2 (v2beta1) on a
//! real API server. They must be equal byte for byte, except at the paths in [`DIFFERENCES`].

use training_job_mpi::MPIJob;
use training_job_testbed::compare_renders;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
* | configmaps.*.labels.training.kubeflow.org/ | objects are watched by these
mpi2-* | services.*.labels.training.kubeflow.org/ | objects are watched by these
mpi2-* | services.*.spec.ports | the recording has an empty list
mpi2-* | pods.*.labels.training.kubeflow.org/replica-type | the pods of all kinds have it
mpi2-* | pods.*launcher.labels.batch.kubernetes.io/ | the launcher is a pod of the job, not of a Job
mpi2-* | pods.*launcher.labels.controller-uid | the launcher is a pod of the job, not of a Job
mpi2-* | pods.*launcher.labels.job-name | the launcher is a pod of the job, not of a Job
mpi2-* | pods.*launcher.controlledBy | the launcher is a pod of the job, not of a Job
mpi2-* | pods.*launcher.ownerReferences | the launcher is a pod of the job, not of a Job
mpi2-gang-volcano* | pods.*.annotations.volcano.sh/task-spec | a task of Volcano is a role
mpi2-gang-volcano-defaults | pods.*launcher.spec.priority | the API server makes a priority of its class
mpi2-intel | pods.*.readinessProbe. | the API server fills in the numbers of a probe
mpi2-invalid | refused | it has two launchers, and a policy that v2beta1 does not have
mpi2-labels-clash | pods.other | a pod that the job does not control is not a worker
mpi2-labels-clash | configmaps.job-config.data.discover_hosts.sh | a pod that the job does not control is not a worker
mpi2-managed-by | pods. | the recording is of another job, because the manager of this one is unknown
mpi2-managed-by | services. | the recording is of another job, because the manager of this one is unknown
mpi2-managed-by | configmaps. | the recording is of another job, because the manager of this one is unknown
mpi2-refused-pod | pods. | the API server refuses the pods
mpi2-suspended | pods. | the recording has what Kueue adds to a job before it starts
mpi2-template | pods.job-launcher.finalizers | the finalizers of a template are kept
mpi2-template | pods.job-worker-0.spec.containers[0].env | a variable of the user with this name is replaced
mpi2-wait-for-workers | pods.job-launcher | all pods are rendered
* | pods.*launcher.spec.containers[0].env | its names are there, too: without them it runs all ranks in the launcher
* | pods.*.spec.containers[0].resources.requests | the API server makes requests of limits
* | pods.*.labels.mpi-job- | readers of the mpi-operator's pods find these, too
* | pods.*worker-*.spec.containers[0].command | a worker ends on SIGTERM
* | pods.*worker-*.spec.containers[0].args | a worker ends on SIGTERM
* | pods.*launcher.spec.initContainers[*].securityContext | it fits the pod security standard restricted
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    assert_eq!(compare_renders::<MPIJob>(DIFFERENCES), 214);
}
