//! Jobs that do not end by themselves.

use std::process::Command;
use std::time::{Duration, Instant};

use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::{Trial, train};
use training_operator_testing::venv::venv;

/// One worker raises after the key-value store was created. Its exit waits for the other worker forever.
const RAISES: &str = "
import time
import mxnet as mx
kv = mx.kv.create('dist_sync')
if kv.rank == 0:
    raise RuntimeError('no data')
time.sleep(10000)
";

#[test]
fn a_worker_that_raises_and_never_exits_is_ended_by_the_deadline() {
    let trial = Trial::new();
    trial.file("train.py", RAISES);
    let job = Manifest::example("train.yaml")
        .named("hangs")
        .replicas("Server", 1);
    let job = job.policy("activeDeadlineSeconds", enough_to_begin().as_secs());
    let mut run = Run::start(train(&trial.dir).arg(trial.write(&job)));
    run.line(&["worker-", " | RuntimeError: no data"]);
    let ended = run.end();
    ended.expect_code(1);
    assert_eq!(ended.conditions("hangs"), ["Created", "Running", "Failed"]);
    ended.only(&["  failed: DeadlineExceeded"]);
    for (name, row) in ended.table() {
        assert_eq!(row.phase, "Stopped", "{name}\n{}", ended.transcript());
    }
}

/// When all workers raise, the scheduler ends with exit code 0.
#[test]
fn a_training_whose_workers_all_raise_has_failed() {
    let trial = Trial::new();
    trial.file(
        "train.py",
        "import mxnet as mx\nkv = mx.kv.create('dist_sync')\nraise RuntimeError('no data')\n",
    );
    let job = Manifest::example("train.yaml").named("raises");
    let ended = Run::start(train(&trial.dir).arg(trial.write(&job))).end();
    ended.expect_code(1);
    assert_eq!(ended.conditions("raises"), ["Created", "Running", "Failed"]);
    ended.only(&["  failed: raises-worker-", "exited with 1"]);
}

/// Returns the time in which a few processes load MXNet and connect at the current load of the machine.
fn enough_to_begin() -> Duration {
    let started = Instant::now();
    let python = venv("mxnet").join("bin/python");
    let loaded = Command::new(python).args(["-c", "import mxnet"]).status();
    assert!(loaded.unwrap().success());
    Duration::from_secs(5) + started.elapsed() * 6
}
