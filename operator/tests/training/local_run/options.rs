//! Options and inputs of jobs that are interrupted. Those of jobs that end are in `operator/tests/offline/cases/local_run.t`.

use rustix::process::Signal;
use serde_json::json;
use training_operator_testing::local_run::manifest::{Manifest, examples};
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::{Trial, train};

#[test]
fn option_why_lists_the_differences_from_a_cluster() {
    let _trial = Trial::new();
    let mut run = train(&examples());
    run.arg("--why").arg(examples().join("train.yaml"));
    let mut run = Run::start(&mut run);
    // The first replica that starts shows the differences of all, whichever it is. The training is not needed for this output.
    let kubernetes = run.line(&[" ? DMLC_USE_KUBERNETES"]);
    run.line(&["worker-0 | worker rank="]);
    run.signal(Signal::INT);
    let ended = run.end();
    ended.expect_code(130);
    assert!(
        kubernetes.contains("1 → 0") || kubernetes.contains("1 -> 0"),
        "{kubernetes}"
    );
    // A difference of all replicas is shown once.
    let root = ended.only(&[" ? DMLC_PS_ROOT_URI", "spirals-scheduler-0"]);
    assert!(root.contains("127."), "{root}");
    ended.only(&[" ? image", "example.com/mxnet-train:1.9.1"]);
    for replica in super::training::REPLICAS {
        ended.only(&[&format!("{replica} ? DMLC_NODE_HOST"), "127."]);
    }
}

#[test]
fn a_pod_waits_for_devices_that_the_machine_does_not_have() {
    let trial = Trial::new();
    let limits = json!({"limits": {"example.com/accelerator": 4}});
    let job = Manifest::shell("with-devices", 1, "echo started")
        .each_container(|container| container["resources"] = limits.clone());
    let mut run = trial.run(&job);
    run.line(&[
        "worker-0 condition message: 0/1 nodes are available: 1 Insufficient example.com/accelerator.",
    ]);
    run.signal(Signal::INT);
    let ended = run.end();
    ended.expect_code(130);
    ended.only(&[
        "training-operator: Worker: stays Pending, because it requests example.com/accelerator 4 and this machine has 0; \
         --ignore-devices starts it without",
    ]);
    assert_eq!(ended.all(&["started"]), Vec::<&str>::new());
}
