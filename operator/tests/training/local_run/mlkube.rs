//! Trains the jobs of mlkube.io in examples/legacy: an MxJob of one worker, and a distributed one.

use std::fs;

use rustix::process::Signal;

use training_job_testbed::cluster::repository;
use training_operator_testing::local_run::manifest::examples;
use training_operator_testing::local_run::run::{Run, send};
use training_operator_testing::local_run::trial::{Trial, train};
use training_operator_testing::processes;

const REPLICAS: [&str; 4] = [
    "scheduler-x7f2-0",
    "server-x7f2-0",
    "worker-x7f2-0",
    "worker-x7f2-1",
];

/// Returns the manifest of an example with a fixed runtime ID and a pause after each step.
fn manifest(file: &str, pause: &str) -> String {
    let text = fs::read_to_string(repository().join("examples/legacy").join(file)).unwrap();
    let threads = "- {name: OMP_NUM_THREADS, value: \"1\"}";
    let paused = format!("- {{name: PAUSE, value: \"{pause}\"}}\n                {threads}");
    let text = text.replacen(threads, &paused, 1);
    text.replacen("spec:\n", "spec:\n  RuntimeId: x7f2\n", 1)
}

#[test]
fn a_worker_trains_alone() {
    let trial = Trial::new();
    let file = trial.file("local.yaml", &manifest("mxjob-local.yaml", "0"));
    let ended = Run::start(train(&examples()).arg(file)).end();
    ended.expect_code(0);
    ended.only(&["worker-x7f2-0 | RESULT ", "accuracy="]);
    let conditions = ["Created", "Running", "Succeeded"];
    assert_eq!(ended.conditions("spirals-local"), conditions);
    ended.expect_all_succeeded(&["worker-x7f2-0"], 0);
}

#[test]
fn a_distributed_training_survives_a_killed_worker() {
    let trial = Trial::new();
    let file = trial.file("dist.yaml", &manifest("mxjob-dist.yaml", "0.1"));
    let mut run = Run::start(train(&examples()).arg(file));
    run.line(&["worker-x7f2-1 | step=1 "]);
    send(
        processes::of_pod(run.pid(), "spirals-dist-worker-x7f2-1"),
        Signal::KILL,
    );
    let ended = run.end();
    ended.expect_code(0);
    let of = |worker: &str| {
        let line = ended.only(&[&format!("{worker} | RESULT "), "accuracy="]);
        line.split_once("weights=").unwrap().1.to_owned()
    };
    assert_eq!(of("worker-x7f2-0"), of("worker-x7f2-1"));
    ended.expect_all_succeeded(&REPLICAS, 1);
}
