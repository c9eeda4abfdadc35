//! Trains the MPI example: a launcher whose `mpirun` starts ranks in the workers.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use training_job_testbed::cluster::repository;
use training_operator_testing::local_run::run::{Ended, Run, send};
use training_operator_testing::local_run::trial::{Trial, local_run};
use training_operator_testing::processes;
use training_operator_testing::venv::venv;

fn train() -> Command {
    let mut run = local_run();
    run.arg("--venv").arg(venv("mpi"));
    run.arg("--workdir").arg(repository().join("examples/mpi"));
    run
}

/// Returns the example with pauses, so that it can be interrupted.
fn slow(trial: &Trial) -> std::path::PathBuf {
    let manifest = fs::read_to_string(repository().join("examples/mpi/train.yaml")).unwrap();
    let slow = manifest.replace("\"2\", python3", "\"2\", env, PAUSE=0.2, python3");
    assert_ne!(manifest, slow);
    trial.file("slow.yaml", &slow)
}

/// Checks that both ranks have the same model and that each ran in a worker of its own. The lines of the launcher begin with
/// this name.
#[track_caller]
fn expect_trained(ended: &Ended, launcher: &str) {
    ended.expect_code(0);
    for (rank, worker) in [(0, "moons-worker-0"), (1, "moons-worker-1")] {
        let place = format!("{launcher} | rank={rank} of 2 in {worker}");
        assert!(!ended.all(&[&place]).is_empty(), "{}", ended.transcript());
    }
    let models: Vec<_> = (0..2)
        .map(|rank| ended.only(&[&format!("{launcher} | RESULT rank={rank} of 2 ")]))
        .map(|line| line.split_once("weights=").unwrap().1)
        .collect();
    assert_eq!(models[0], models[1]);
}

#[test]
fn ranks_train_in_the_workers() {
    let _trial = Trial::new();
    let run = Run::start(train().arg(repository().join("examples/mpi/train.yaml")));
    expect_trained(&run.end(), "launcher/mpi");
}

/// Workers of v2beta1 run the `sshd` of this machine, which `make test-ssh` requires, or say what is missing.
#[test]
fn ranks_of_v2beta1_train_in_the_workers() {
    let trial = Trial::new();
    let manifest = fs::read_to_string(repository().join("examples/mpi/train.yaml")).unwrap();
    let run = Run::start(train().arg(trial.file("v2.yaml", &manifest.replace("/v1\n", "/v2beta1\n"))));
    let ended = run.end();
    expect_trained(&ended, "launcher");
    let without = "; the node starts processes in the pod";
    for worker in ["worker-0", "worker-1"] {
        let has = |text: &str| !ended.all(&[worker, text]).is_empty();
        let is_missing = std::env::var_os("SSHD_REQUIRED").is_none() && has(without);
        assert!(has("Accepted publickey") || is_missing, "{}", ended.transcript());
    }
}

/// Open MPI ends with exit code 0 in this case, but the job must not succeed.
#[test]
fn a_killed_worker_restarts_the_job() {
    let trial = Trial::new();
    let mut run = Run::start(train().arg(slow(&trial)));
    run.line(&["launcher/mpi | step=50 "]);
    let sleeper = processes::first_of_pod(run.pid(), "moons-worker-1");
    send(sleeper, Signal::KILL);
    let ended = run.end();
    ended.only(&["moons * Restarting: "]);
    expect_trained(&ended, "launcher/mpi");
}

#[test]
fn a_config_map_that_the_operator_creates_need_not_be_in_the_files() {
    let trial = Trial::new();
    let manifest = trial.file(
        "hosts.yaml",
        "apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: hosts}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi
            image: none
            command: [sh, -c, 'echo $HOSTS']
            env: [{name: HOSTS, valueFrom: {configMapKeyRef: {name: hosts-config, key: hostfile}}}]
    Worker:
      replicas: 1
      template: {spec: {containers: [{name: mpi, image: none, command: [sleep, '60']}]}}
",
    );
    let ended = Run::start(local_run().arg(manifest)).end();
    ended.expect_code(0);
    ended.only(&["slots=1"]);
}
