//! Trainings that hang are found by their output (`runPolicy.progress`), and others are left alone.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use training_job_testbed::cluster::repository;
use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::run::{Ended, Run, send};
use training_operator_testing::local_run::trial::{Trial, local_run};
use training_operator_testing::processes;
use training_operator_testing::venv::venv;

use super::PYTORCH;

/// Counts with tqdm, whose bar has no line feed before its end.
const BAR: &str = "import time
from tqdm import tqdm
for step in tqdm(range(120)):
    time.sleep(0.5)";

/// A rank that never comes to the next step. The other one waits for it.
const LOOP: &str = "import time
from mpi4py import MPI
world = MPI.COMM_WORLD
for step in range(1, 100):
    total = world.allreduce(step)
    if world.rank == 0:
        print(f'step={step} total={total}', flush=True)
    while step == 20 and world.rank == 1:
        time.sleep(1)
";

/// Returns the policy. Frameworks may take long to start on a busy machine.
fn limit(seconds: u32, on_stall: &str) -> Value {
    json!({"stalledAfterSeconds": seconds, "startSeconds": 150, "onStall": on_stall})
}

/// Returns the flags that give jobs the policy.
fn with(progress: &Value) -> [String; 2] {
    ["--set".to_owned(), format!("spec.runPolicy.progress={progress}")]
}

/// Checks that the job restarted once, because this replica was silent, and succeeded.
#[track_caller]
fn expect_one_restart(ended: &Ended, job: &str, silent: &str) {
    expect_success(ended, 1);
    ended.only(&[&format!("{job} * Restarting: "), " is stalled: ", silent]);
    ended.only(&[&format!("  restarted: {job}-{silent}, Stalled")]);
}

/// Checks that the job succeeded. Workers that end after the master may have been stopped.
#[track_caller]
fn expect_success(ended: &Ended, restarts: u32) {
    ended.expect_code(0);
    for row in ended.table().values() {
        assert_eq!(row.restarts, restarts, "{}", ended.transcript());
    }
}

/// The others wait in an all-reduce. The deciding replica is the master, which is not stopped.
#[test]
fn a_stopped_rank_of_pytorch_restarts_the_job() {
    let trial = Trial::new();
    let manifest = trial.file("slow.yaml", &PYTORCH.slow("0.3"));
    let mut run = Run::start(PYTORCH.train().args(with(&limit(30, "Restart"))).arg(manifest));
    // Each wait has a time limit of its own.
    run.line(&["worker-1 | epoch=1 "]);
    run.line(&["worker-1 | epoch=20 "]);
    send(
        processes::first_of_pod(run.pid(), "circles-worker-1"),
        Signal::STOP,
    );
    run.line(&["circles * Restarting: "]);
    run.line(&["worker-1 | epoch=1 "]);
    let ended = run.end();
    expect_one_restart(&ended, "circles", "master-0");
    PYTORCH.expect_trained(&ended);
}

/// Workers wait for a server forever. Servers print nothing, so worker 0 is watched.
#[test]
fn a_stopped_server_of_mxnet_restarts_the_job() {
    let trial = Trial::new();
    let job = Manifest::example("train.yaml").env("PAUSE", "0.2");
    let mut run = trial.train(&job.policy("progress", limit(30, "Restart")));
    run.line(&["worker-0 | step=20 "]);
    send(processes::of_pod(run.pid(), "spirals-server-0"), Signal::STOP);
    run.line(&["spirals * Restarting: "]);
    let ended = run.end();
    expect_one_restart(&ended, "spirals", "worker-0");
    let weights = ["worker-0", "worker-1"].map(|worker| {
        let result = ended.only(&[&format!("{worker} | RESULT ")]);
        result.split_once("weights=").unwrap().1
    });
    assert_eq!(weights[0], weights[1]);
}

/// mpirun, whose ranks all live, would wait for them forever.
#[test]
fn an_endless_loop_of_an_mpi_rank_fails_the_job() {
    let trial = Trial::new();
    let manifest = fs::read_to_string(repository().join("examples/mpi/train.yaml")).unwrap();
    trial.file("train.py", LOOP);
    let mut run = local_run();
    run.arg("--venv")
        .arg(venv("mpi"))
        .args(with(&limit(30, "Fail")))
        .arg(trial.file("loop.yaml", &manifest));
    let ended = Run::start(&mut run).end();
    ended.expect_code(1);
    ended.only(&["launcher/mpi | step=20 "]);
    ended.only(&["moons * Failed: ", "stalled"]);
    ended.only(&["  failed: moons-launcher, Stalled"]);
    ended.only(&["    | moons-launcher has printed nothing for ", "step=20 "]);
    assert_eq!(ended.table()["launcher"].restarts, 0);
}

/// Only rank 0 prints, as in most trainings.
#[test]
fn a_job_whose_first_rank_alone_prints_is_not_stalled() {
    let trial = Trial::new();
    // The ordinary end of a process with PyTorch is silent, and takes as long as the limit on a busy machine.
    let train = "exec python3 -c 'import os, train; os._exit(train.main())'";
    let silent = format!("command: [sh, -c, \"test $RANK = 0 || exec >/dev/null; {train}\"]");
    let slow = PYTORCH.slow("1.2");
    let job = slow.replace("command: [python3, train.py]", &silent);
    assert_ne!(slow, job);
    let mut run = PYTORCH.train();
    run.args(with(&limit(30, "Fail")))
        .arg(trial.file("silent.yaml", &job));
    let mut run = Run::start(&mut run);
    run.line(&["master-0 | epoch=1 "]);
    let ended = run.end();
    expect_success(&ended, 0);
    let ranks: BTreeSet<_> = ended.all(&[" rank="]).iter().map(|line| &line[..8]).collect();
    assert_eq!(ranks, ["master-0"].into(), "{}", ended.transcript());
}

#[test]
fn a_bar_that_rewrites_its_line_is_progress() {
    let trial = Trial::new();
    let job = Manifest::shell("bar", 1, "exec python3 -c \"$$BAR\"").env("BAR", BAR);
    let manifest = trial.write(&job.policy("progress", limit(15, "Fail")));
    let report = trial.dir.join("bar.json");
    let mut run = local_run();
    run.arg("--venv").arg(venv("tqdm"));
    run.arg("--report").arg(&report).arg(manifest);
    let ended = Run::start(&mut run).end();
    expect_success(&ended, 0);
    let story: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let (step, total) = story["progress"].as_str().unwrap().split_once('/').unwrap();
    assert!((1..=120).contains(&step.parse().unwrap()), "{step}");
    assert_eq!(total, "120");
}

/// Runs a script whose steps count.
fn count(name: &str, script: &str) -> Ended {
    let trial = Trial::new();
    let mut progress = limit(15, "Fail");
    progress["pattern"] = json!(r"step (?P<step>\d+)");
    trial
        .run(&Manifest::shell(name, 1, script).policy("progress", progress))
        .end()
}

#[test]
fn noise_without_a_new_step_is_a_stall() {
    let ended = count("noise", "while :; do echo alive; echo step 7 of 9; sleep 1; done");
    ended.expect_code(1);
    ended.only(&["  failed: noise-worker-0, Stalled"]);
    ended.only(&["    | noise-worker-0 has printed no new step for "]);
}

#[test]
fn a_job_with_slow_steps_is_not_stalled() {
    let ended = count("slow", "for n in 1 2 3 4 5; do echo step $n of 5; sleep 11; done");
    expect_success(&ended, 0);
}
