//! What the Go operator v1.8.1 made of PyTorchJobs on a real API server, and what we make of them: the
//! same to the byte, but for the places in [`DIFFERENCES`] and [`MORE_TOLD`].

use training_job_pytorch::PyTorchJob;
use training_job_testing::{Difference, compare_renders};

/// Everything that differs. An entry that matches nothing fails the test.
const DIFFERENCES: &[Difference<'_>] = &[
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

const TWICE: &str = "a variable that the user sets with the operator's stays twice there";
const ENDED: &str = "the Go operator ends at an empty list";
const UNSET: &str = "the Go operator refuses a master whose number is not written";

/// Scenarios of workers without a master that are not elastic: those are told where to meet, behind what the Go operator
/// tells them.
const MORE_TOLD: [&str; 5] = [
    "pt-exitcode-codes",
    "pt-ttl",
    "pt-workers-only",
    "pt-workers-only-fails",
    "pt-workers-only-ports",
];

/// Scenarios with a master and a worker, which has an init container there. It is not made yet.
const WAITS: [&str; 5] = [
    "pt-deadline",
    "pt-defaults",
    "pt-invalid-update",
    "pt-onfailure-master",
    "pt-scale-master",
];

/// The same with two workers.
const TWO_WAIT: [&str; 12] = [
    "pt-backoff-onfailure",
    "pt-clean-running",
    "pt-delete-job",
    "pt-elastic-master",
    "pt-elastic-nproc-old",
    "pt-env-user",
    "pt-exitcode",
    "pt-master-pending",
    "pt-nproc-int",
    "pt-onfailure-failed",
    "pt-sidecar-port",
    "pt-terminating-never",
];

const INIT: [&str; 3] = [
    "pods.job-worker-0.spec.initContainers",
    "pods.job-worker-1.spec.initContainers",
    "pods.pytorch-simple-worker-0.spec.initContainers",
];

#[test]
fn renders_are_the_go_operators_but_where_we_say_so() {
    let mut differences = DIFFERENCES.to_vec();
    for scenario in MORE_TOLD {
        differences.push((
            scenario,
            "pods.job-worker-0.spec.containers[0].env",
            "more is told",
        ));
        differences.push((
            scenario,
            "pods.job-worker-1.spec.containers[0].env",
            "more is told",
        ));
    }
    differences.push((
        "pt-workers-only-ports",
        "pods.job-worker-0.spec.containers[1].env",
        "more is told",
    ));
    differences.push((
        "pt-workers-only-ports",
        "pods.job-worker-1.spec.containers[1].env",
        "more is told",
    ));
    differences.extend(
        WAITS
            .iter()
            .chain(&TWO_WAIT)
            .map(|scenario| (*scenario, INIT[0], "no init container")),
    );
    differences.extend(TWO_WAIT.map(|scenario| (scenario, INIT[1], "no init container")));
    differences.push(("pt-simple", INIT[2], "no init container"));
    let compared = compare_renders::<PyTorchJob>(&differences);
    assert_eq!(compared, 173);
}
