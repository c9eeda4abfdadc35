//! Trains and tunes with the examples.

use serde_json::json;
use training_operator_testing::local_run::manifest::{Manifest, examples};
use training_operator_testing::local_run::run::{Ended, Run};
use training_operator_testing::local_run::trial::{Trial, local_run, train};
use training_operator_testing::processes;
use training_operator_testing::venv::venv;

pub(crate) const REPLICAS: [&str; 5] = ["scheduler-0", "server-0", "server-1", "worker-0", "worker-1"];

/// Returns the weights of a RESULT line.
fn weights(line: &str) -> &str {
    line.split_once("weights=").unwrap_or_else(|| panic!("{line}")).1
}

/// Checks that both workers of a job have the same weights in their lines.
#[track_caller]
pub(crate) fn expect_trained(ended: &Ended, prefix: &str) {
    let first = ended.only(&[&format!("{prefix}worker-0 | RESULT "), "accuracy="]);
    let second = ended.only(&[&format!("{prefix}worker-1 | RESULT "), "accuracy="]);
    assert!(first.starts_with(prefix) && second.starts_with(prefix));
    assert_eq!(weights(first), weights(second));
}

#[test]
fn a_distributed_training_succeeds() {
    let _trial = Trial::new();
    let mut run = Run::start(train(&examples()).arg(examples().join("train.yaml")));
    run.line(&["worker-", " | step=1 rank="]);
    assert_eq!(
        processes::of_pods(run.pid()),
        REPLICAS.map(|name| format!("spirals-{name}"))
    );

    let ended = run.end();
    ended.expect_code(0);
    expect_trained(&ended, "");
    assert_eq!(ended.conditions("spirals"), ["Created", "Running", "Succeeded"]);
    ended.expect_all_succeeded(&REPLICAS, 0);
    for line in &ended.out {
        assert!(
            !line.contains('\u{1b}'),
            "no colours without a terminal: {line:?}"
        );
    }
    ended.only(&["training-operator: images are not pulled"]);
    assert_eq!(ended.err, [""; 0]);
}

/// The processes start in the folder of the first FILE.
#[test]
fn a_worker_alone_trains_beside_its_manifest() {
    let _trial = Trial::new();
    let mut run = local_run();
    run.arg("--venv")
        .arg(venv("mxnet"))
        .arg(examples().join("worker.yaml"));
    let ended = Run::start(&mut run).end();
    ended.expect_code(0);
    ended.only(&["worker-0 | RESULT "]);
    ended.expect_all_succeeded(&["worker-0"], 0);
}

/// Tracker and servers never end by themselves, and have children in other process groups.
#[test]
fn tuning_succeeds_and_the_rest_is_stopped() {
    let _trial = Trial::new();
    let mut run = local_run();
    run.arg("--venv")
        .arg(venv("tvm"))
        .arg(examples().join("tune.yaml"));
    let ended = Run::start(&mut run).end();
    ended.expect_code(0);
    ended.only(&["tuner-0 | RESULT records="]);
    assert_eq!(ended.conditions("matmul"), ["Created", "Running", "Succeeded"]);
    let table = ended.table();
    assert_eq!(&*table["tuner-0"].phase, "Succeeded");
    assert_eq!(table["tuner-0"].exit, Some(0));
    for name in ["tunertracker-0", "tunerserver-0", "tunerserver-1"] {
        assert_eq!(table[name].phase, "Stopped", "{}", ended.transcript());
    }
}

/// Frameworks have no hook for this: a role's own program finds the others by name, index and MX_CONFIG.
#[test]
fn replicas_know_each_other() {
    let trial = Trial::new();
    let script = "echo $$HOSTNAME of $$DMLC_NUM_WORKER; python3 -c \"$$CODE\"";
    let code = "import json, os
config = json.loads(os.environ['MX_CONFIG'])
print(config['task']['type'], config['task']['index'], len({w['url'] for w in config['cluster']['worker']}))";
    let job = Manifest::shell("known", 3, script).env("CODE", code);
    let ended = trial.run(&job).end();
    ended.expect_code(0);
    for index in 0..3 {
        ended.only(&[&format!("worker-{index} | known-worker-{index} of 3")]);
        ended.only(&[&format!("worker-{index} | worker {index} 3")]);
    }
}

/// Each container's lines begin with its name, and the job ends with its main container.
#[test]
fn lines_of_several_containers_have_their_names() {
    let trial = Trial::new();
    let beside = json!({"name": "beside", "image": "none", "command": ["sh", "-c", "echo hello"]});
    let job = Manifest::shell("pair", 1, "echo hello").each_role(|role| {
        let containers = role["template"]["spec"]["containers"].as_array_mut().unwrap();
        containers.push(beside.clone());
    });
    let ended = trial.run(&job).end();
    ended.expect_code(0);
    ended.only(&["worker-0/mxnet | hello"]);
    ended.only(&["worker-0/beside | hello"]);
}
