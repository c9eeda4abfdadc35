//! Trains the XGBoost example: a collective of a master and two workers.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use training_job_testbed::cluster::repository;
use training_operator_testing::local_run::run::{Ended, Run, send};
use training_operator_testing::local_run::trial::{Trial, local_run};
use training_operator_testing::processes;
use training_operator_testing::venv::venv;

const REPLICAS: [&str; 3] = ["master-0", "worker-0", "worker-1"];

fn train() -> Command {
    let mut run = local_run();
    run.arg("--venv").arg(venv("xgboost"));
    run.arg("--workdir").arg(repository().join("examples/xgboost"));
    run
}

/// All ranks have the same model.
#[track_caller]
fn expect_trained(ended: &Ended, restarts: u32) {
    ended.expect_code(0);
    let models: Vec<_> = REPLICAS
        .iter()
        .map(|replica| ended.only(&[&format!("{replica} | RESULT "), " of 3 accuracy="]))
        .map(|line| line.split_once("model=").unwrap().1)
        .collect();
    assert!(models.iter().all(|model| *model == models[0]), "{models:?}");
    ended.expect_all_succeeded(&REPLICAS, restarts);
}

#[test]
fn a_collective_trains() {
    let _trial = Trial::new();
    let run = Run::start(train().arg(repository().join("examples/xgboost/train.yaml")));
    expect_trained(&run.end(), 0);
}

/// The other ranks would wait for it forever.
#[test]
fn a_killed_rank_restarts_the_collective() {
    let trial = Trial::new();
    let threads = "- {name: OMP_NUM_THREADS, value: \"1\"}";
    let manifest = fs::read_to_string(repository().join("examples/xgboost/train.yaml")).unwrap();
    let slow = manifest.replace(
        threads,
        &format!("- {{name: PAUSE, value: \"0.1\"}}\n                {threads}"),
    );
    assert_ne!(manifest, slow);
    let mut run = Run::start(train().arg(trial.file("slow.yaml", &slow)));
    run.line(&["worker-1 | round=10 "]);
    send(processes::of_pod(run.pid(), "moons-worker-1"), Signal::KILL);
    let ended = run.end();
    ended.only(&["moons * Restarting: "]);
    expect_trained(&ended, 1);
}
