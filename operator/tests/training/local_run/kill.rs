//! Processes that are killed during training.

use rustix::process::Signal;
use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::run::{Ended, Run, send};
use training_operator_testing::local_run::trial::Trial;
use training_operator_testing::processes;

use super::training::{REPLICAS, expect_trained};

/// Returns a training that takes some seconds, so that it can be interrupted.
fn slow() -> Manifest {
    Manifest::example("train.yaml")
        .env("STEPS", "40")
        .env("PAUSE", "0.1")
}

/// Kills the process of a replica once a worker has completed its first step.
fn kill(run: &mut Run, replica: &str) {
    run.line(&["worker-", " | step=1 rank="]);
    send(
        processes::of_pod(run.pid(), &format!("spirals-{replica}")),
        Signal::KILL,
    );
}

/// Checks that all replicas restarted once and that the killed replica is named.
#[track_caller]
fn expect_one_restart_because_of(ended: &Ended, replica: &str) {
    ended.expect_code(0);
    ended.only(&["spirals * Restarting: "]);
    let cause = format!("  restarted: spirals-{replica} (container mxnet) exited with 137 (signal 9)");
    ended.only(&[&cause]);
    ended.expect_all_succeeded(&REPLICAS, 1);
    for replica in REPLICAS {
        assert!(
            !ended
                .all(&[&format!("{replica} * Running, restart 1")])
                .is_empty(),
            "{}",
            ended.transcript()
        );
    }
    assert_eq!(
        ended.conditions("spirals"),
        ["Created", "Restarting", "Running", "Succeeded"]
    );
    // The first attempt has no result.
    expect_trained(ended, "");
}

#[test]
fn a_killed_worker_restarts_the_job() {
    survive("worker-1");
}

#[test]
fn a_killed_scheduler_restarts_the_job() {
    survive("scheduler-0");
}

#[test]
fn a_killed_server_restarts_the_job() {
    survive("server-0");
}

fn survive(replica: &str) {
    let trial = Trial::new();
    let mut run = trial.train(&slow());
    kill(&mut run, replica);
    run.line(&["spirals * Restarting: "]);
    expect_one_restart_because_of(&run.end(), replica);
}

/// Under OnFailure the node restarts the worker in its pod, but the cluster does not accept the worker again.
#[test]
fn a_worker_restarted_in_place_restarts_the_job() {
    let trial = Trial::new();
    let mut run = trial.train(&slow().restart_policy("OnFailure"));
    kill(&mut run, "worker-0");
    let ended = run.end();
    expect_one_restart_because_of(&ended, "worker-0");
}

/// The others would wait for the dead worker forever.
#[test]
fn without_restarts_a_killed_worker_fails_the_job() {
    let trial = Trial::new();
    let mut run = trial.train(&slow().policy("backoffLimit", 0));
    kill(&mut run, "worker-1");
    let ended = run.end();
    ended.expect_code(1);
    assert_eq!(ended.all(&["Restarting"]), [""; 0]);
    assert_eq!(ended.conditions("spirals"), ["Created", "Running", "Failed"]);
    ended.only(&[
        "  failed: spirals-worker-1 (container mxnet) exited with 137 (signal 9); backoffLimit 0 is used up",
    ]);
    // The last lines of its output are below its end.
    assert_eq!(
        ended.all(&["    | ", "worker rank="]).len(),
        1,
        "{}",
        ended.transcript()
    );
    let table = ended.table();
    assert_eq!(&*table["worker-1"].phase, "Failed");
    assert_eq!(table["worker-1"].exit, Some(137));
    for survivor in ["scheduler-0", "server-0", "server-1", "worker-0"] {
        assert_eq!(table[survivor].phase, "Stopped", "{}", ended.transcript());
    }
}

/// The summary contains the program's own output.
#[test]
fn an_ordinary_failure_shows_the_last_lines() {
    let trial = Trial::new();
    let job = Manifest::shell("wrong", 1, "echo one; echo two >&2; exit 3").restart_policy("ExitCode");
    let ended = trial.run(&job).end();
    ended.expect_code(1);
    ended.only(&["  failed: wrong-worker-0 (container mxnet) exited with 3"]);
    ended.only(&["    | ", "one"]);
    ended.only(&["    | ", "two"]);
    assert_eq!(ended.table()["worker-0"].exit, Some(3));
}
