//! Trains with PyTorch, JAX and Paddle by `training-operator local run`, also while their processes are killed. `make
//! test-frameworks` runs this test, which needs downloads of 125 to 220 MB each.

mod stalls;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use rustix::process::Signal;
use training_operator_testing::local_run::run::{Ended, Run, send};
use training_operator_testing::local_run::trial::{Trial, local_run};

use super::example::{Example, JAX, PADDLE, PYTORCH};

impl Example {
    fn train(self) -> Command {
        let mut run = local_run();
        run.arg("--venv")
            .arg(training_operator_testing::venv::venv(self.framework));
        run.arg("--workdir").arg(self.folder());
        run
    }

    /// Checks that all ranks have the same model.
    #[track_caller]
    fn expect_trained(self, ended: &Ended) {
        ended.expect_code(0);
        let lines: BTreeSet<_> = (0..self.ranks)
            .map(|rank| ended.only(&[&format!("RESULT rank={rank} of {} ", self.ranks)]))
            .map(|line| line.split_once("weights=").unwrap().1)
            .collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    fn trains(self) {
        let _trial = Trial::new();
        let run = Run::start(self.train().arg(self.folder().join("train.yaml")));
        self.expect_trained(&run.end());
    }

    /// Kills the first process of a pod once the training has begun. All replicas must restart.
    fn survives(self, pod: &str, pause: &str, begun: &str) {
        let trial = Trial::new();
        let mut run = Run::start(self.train().arg(trial.file("slow.yaml", &self.slow(pause))));
        run.line(&[begun]);
        send(
            training_operator_testing::processes::first_of_pod(run.pid(), pod),
            Signal::KILL,
        );
        let ended = run.end();
        ended.only(&[&format!("{} * Restarting: ", self.name)]);
        self.expect_trained(&ended);
    }
}

#[test]
fn pytorch_trains() {
    PYTORCH.trains();
}

#[test]
fn a_killed_worker_of_pytorch_restarts_the_job() {
    PYTORCH.survives("circles-worker-1", "0.2", " | epoch=10 ");
}

#[test]
fn a_killed_master_of_pytorch_restarts_the_job() {
    PYTORCH.survives("circles-master-0", "0.2", " | epoch=10 ");
}

/// torch's rank 0 listens at all addresses. With one port the ranks of both jobs would mix, and both would succeed.
#[test]
fn two_jobs_of_pytorch_train_side_by_side() {
    let trial = Trial::of_jobs(2);
    let one = Run::start(PYTORCH.train().arg(trial.file("one.yaml", &PYTORCH.slow("0.05"))));
    let other = PYTORCH.slow("0.05").replace("name: circles", "name: others");
    let other = Run::start(PYTORCH.train().arg(trial.file("other.yaml", &other)));
    PYTORCH.expect_trained(&one.end());
    PYTORCH.expect_trained(&other.end());
}

/// Workers wait for a master that starts late, without an init container.
#[test]
fn workers_of_pytorch_wait_for_their_master() {
    let trial = Trial::new();
    let text = PYTORCH.text();
    let master = text.find("    Master:").unwrap();
    let worker = text.find("    Worker:").unwrap();
    let late = "command: [sh, -c, \"sleep 30; exec python3 train.py\"]";
    // The workers' template is a YAML alias of the master's. Here each role has its own.
    let own = text[master..worker]
        .replace("Master", "Worker")
        .replace("replicas: 1", "replicas: 2");
    let late = text[master..worker].replace("command: [python3, train.py]", late);
    let job = format!("{}{}{}", &text[..master], late, own.replace("&template", ""));
    let run = Run::start(
        PYTORCH
            .train()
            .arg(trial.file("late.yaml", &job.replace("&template", ""))),
    );
    let ended = run.end();
    assert!(ended.all(&["Restarting"]).is_empty(), "{}", ended.transcript());
    PYTORCH.expect_trained(&ended);
}

/// The others continue from the checkpoint without the killed worker, and accept it again when it returns.
#[test]
fn elastic_workers_of_pytorch_come_and_go() {
    let trial = Trial::new();
    let text = fs::read_to_string(PYTORCH.folder().join("elastic.yaml")).unwrap();
    let checkpoints = trial.dir.join("checkpoints");
    fs::create_dir_all(&checkpoints).unwrap();
    let variable = "- {name: OMP_NUM_THREADS, value: \"1\"}";
    let job = text
        .replace("/tmp/circles-elastic", &checkpoints.display().to_string())
        .replace("maxReplicas: 4", "maxReplicas: 2")
        .replace(
            variable,
            &format!("- {{name: PAUSE, value: \"1\"}}\n                {variable}"),
        );
    let mut run = Run::start(PYTORCH.train().arg(trial.file("elastic.yaml", &job)));
    run.line(&["worker-0 | ", "epoch=5 "]);
    send(
        training_operator_testing::processes::first_of_pod(run.pid(), "circles-elastic-worker-1"),
        Signal::KILL,
    );
    let resumed = run.line(&["worker-0 | ", "resume epoch="]);
    let epoch = resumed.split_once("epoch=").unwrap().1;
    let epoch: u32 = epoch.split_once(' ').unwrap().0.parse().unwrap();
    assert!(epoch >= 4, "it goes on from the checkpoint: {resumed}");
    let ended = run.end();
    ended.expect_code(0);
    assert!(
        !ended.all(&["RESULT rank=0 of 2 "]).is_empty(),
        "{}",
        ended.transcript()
    );
    assert!(
        ended.all(&["circles-elastic * Restarting: "]).is_empty(),
        "nobody else restarts"
    );
}

#[test]
fn jax_trains() {
    JAX.trains();
}

#[test]
fn a_killed_process_of_jax_restarts_the_job() {
    JAX.survives("rings-worker-0", "0.2", " | step=50 ");
}

#[test]
fn paddle_trains() {
    PADDLE.trains();
}

#[test]
fn a_killed_launcher_of_paddle_restarts_the_job() {
    PADDLE.survives("waves-worker-1", "0.2", "epoch=10 ");
}
