//! Compares our objects of PyTorchJobs with those of the Go operator v1.8.1 on a real API server. They must be equal
//! byte for byte, except at the paths in [`DIFFERENCES`] and for [`ADDED_VARIABLES`].

use std::sync::Arc;

use training_job::Settings;
use training_job_pytorch::PyTorchJob;
use training_job_testbed::{Difference, compare_renders_with};

/// All differences. An entry that matches nothing fails the test.
const DIFFERENCES: &[Difference<'_>] = &[
    ("*", "pods.*.initContainers*.imagePullPolicy", PULL),
    (
        "*",
        "pods.*.initContainers*.securityContext",
        "it fits the pod security standard restricted",
    ),
    ("pt-env-user", "pods.job-master-0.spec.containers[0].env", TWICE),
    ("pt-env-user", "pods.job-worker-0.spec.containers[0].env", TWICE),
    ("pt-env-user", "pods.job-worker-1.spec.containers[0].env", TWICE),
    ("pt-hazard-rdzvconf-empty", "pods.job-worker-0", ENDED),
    ("pt-hazard-rdzvconf-empty", "services.job-worker-0", ENDED),
    ("pt-invalid-master-unset", "pods.job-", UNSET),
    ("pt-invalid-master-unset", "services.job-", UNSET),
    ("pt-nproc-word", "refused", "no such word"),
    (
        "pt-sidecar-port",
        "pods.job-worker-0.spec.containers[1].env",
        TWICE,
    ),
    (
        "pt-sidecar-port",
        "pods.job-worker-1.spec.containers[1].env",
        TWICE,
    ),
    (
        "pt-zero-workers",
        "services.job-worker-0",
        "a role without replicas is absent",
    ),
];

const PULL: &str = "recordings have no value that the API server would fill in";
const TWICE: &str = "a variable that the user sets with the operator's stays twice there";
const ENDED: &str = "the Go operator ends at an empty list";
const UNSET: &str = "the Go operator refuses a master whose number is not written";

/// Scenarios of workers without a master that are not elastic. They get a rendezvous address in addition to the
/// variables of the Go operator.
const ADDED_VARIABLES: [&str; 5] = [
    "pt-exitcode-codes",
    "pt-ttl",
    "pt-workers-only",
    "pt-workers-only-fails",
    "pt-workers-only-ports",
];

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    let mut differences = DIFFERENCES.to_vec();
    let added = ADDED_VARIABLES.map(|scenario| (scenario, "pods.job-worker-*.env", "variables are added"));
    differences.extend(added);
    // Under the Go operator each job's workers wait for the master's name in an init container.
    let mut settings = Settings::default();
    settings.values = Arc::new(
        [(
            "pytorch-init-container-image".to_owned(),
            "alpine:3.10".to_owned(),
        )]
        .into(),
    );
    let compared = compare_renders_with::<PyTorchJob>(&settings, &differences);
    assert_eq!(compared, 179);
}
