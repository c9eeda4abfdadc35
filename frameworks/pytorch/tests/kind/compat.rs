//! Compares our objects of PyTorchJobs with those of the Go operator v1.8.1 on a real API server. They must be equal
//! byte for byte, except at the places in [`DIFFERENCES`].

use std::sync::Arc;

use training_job::Settings;
use training_job_pytorch::PyTorchJob;
use training_job_testbed::compare_renders_with;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
* | pods.*.initContainers*.imagePullPolicy | recordings have no value that the API server would fill in
* | pods.*.initContainers*.securityContext | it fits the pod security standard restricted
pt-env-user | pods.job-master-0.spec.containers[0].env | a variable that the user sets with the operator's stays twice there
pt-env-user | pods.job-worker-0.spec.containers[0].env | a variable that the user sets with the operator's stays twice there
pt-env-user | pods.job-worker-1.spec.containers[0].env | a variable that the user sets with the operator's stays twice there
pt-hazard-rdzvconf-empty | pods.job-worker-0 | the Go operator ends at an empty list
pt-hazard-rdzvconf-empty | services.job-worker-0 | the Go operator ends at an empty list
pt-invalid-master-unset | pods.job- | the Go operator refuses a master whose number is not written
pt-invalid-master-unset | services.job- | the Go operator refuses a master whose number is not written
pt-nproc-word | refused | no such word
pt-sidecar-port | pods.job-worker-0.spec.containers[1].env | a variable that the user sets with the operator's stays twice there
pt-sidecar-port | pods.job-worker-1.spec.containers[1].env | a variable that the user sets with the operator's stays twice there
pt-zero-workers | services.job-worker-0 | a role without replicas is absent
pt-exitcode-codes | pods.job-worker-*.env | workers without a master get a rendezvous address as well
pt-ttl | pods.job-worker-*.env | workers without a master get a rendezvous address as well
pt-workers-only | pods.job-worker-*.env | workers without a master get a rendezvous address as well
pt-workers-only-fails | pods.job-worker-*.env | workers without a master get a rendezvous address as well
pt-workers-only-ports | pods.job-worker-*.env | workers without a master get a rendezvous address as well
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    // Under the Go operator each job's workers wait for the master's name in an init container.
    let mut settings = Settings::default();
    settings.values = Arc::new(
        [(
            "pytorch-init-container-image".to_owned(),
            "alpine:3.10".to_owned(),
        )]
        .into(),
    );
    let compared = compare_renders_with::<PyTorchJob>(&settings, DIFFERENCES);
    assert_eq!(compared, 179);
}
