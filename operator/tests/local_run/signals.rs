//! Ctrl-C, and other ends from outside.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::manifest::Manifest;
use crate::processes;
use crate::trial::Trial;

/// What processes are given between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// A worker that does not heed SIGTERM, with children in its process group, out of it, and out of its session.
const STUBBORN: &str = "trap '' TERM
sleep 1000 &
python3 -c 'import os, time; os.setpgid(0, 0); print(\"child\", flush=True); time.sleep(1000)' &
setsid sh -c 'echo child; exec sleep 1000' &
wait";

#[test]
fn ctrl_c_in_mid_training_stops_everything() {
    let trial = Trial::new();
    let mut run = trial.train(&Manifest::example("train.yaml").env("PAUSE", "100"));
    run.line(&["worker-", " | step=1 rank="]);
    run.signal(Signal::INT);
    let ended = run.end();
    ended.expect_code(130);
    ended.only(&["training-operator: stopping; once more to kill at once"]);
    assert_eq!(
        ended.conditions("spirals"),
        [("Created", true), ("Running", true)]
    );
}

#[test]
fn a_second_ctrl_c_kills_at_once() {
    let trial = Trial::new();
    let mut run = trial.run(&Manifest::shell("stubborn", 2, STUBBORN));
    for _ in 0..4 {
        run.line(&[" | child"]);
    }
    assert!(processes::of_run(run.pid()).len() > 8);
    run.signal(Signal::INT);
    let asked = Instant::now();
    run.line(&["stopping; once more to kill at once"]);
    run.signal(Signal::INT);
    let ended = run.end();
    assert!(asked.elapsed() < GRACE, "{:?}", asked.elapsed());
    ended.expect_code(130);
    ended.only(&["training-operator: killed"]);
}

/// Once is enough, too: it takes the grace.
#[test]
fn what_ignores_the_request_is_killed_after_the_grace() {
    let trial = Trial::new();
    let mut run = trial.run(&Manifest::shell("stubborn", 1, STUBBORN));
    for _ in 0..2 {
        run.line(&[" | child"]);
    }
    run.signal(Signal::INT);
    let asked = Instant::now();
    let ended = run.end();
    assert!(asked.elapsed() >= GRACE, "{:?}", asked.elapsed());
    ended.expect_code(130);
}

#[test]
fn other_signals_have_codes_of_their_own() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let trial = Trial::new();
        let mut run = trial.run(&Manifest::shell("long", 1, "echo up; exec sleep 1000"));
        run.line(&["worker-0 | up"]);
        run.signal(signal);
        run.end().expect_code(code);
    }
}

/// Nobody is left to stop the processes but the guard.
#[test]
fn nothing_outlives_an_operator_that_is_killed() {
    let trial = Trial::new();
    let mut run = trial.run(&Manifest::shell("stubborn", 2, STUBBORN));
    for _ in 0..4 {
        run.line(&[" | child"]);
    }
    let operator = run.pid();
    assert!(processes::of_run(operator).len() > 8);
    run.signal(Signal::KILL);
    assert_eq!(run.end_anyhow().code, 137);
    processes::expect_gone(operator);
}
