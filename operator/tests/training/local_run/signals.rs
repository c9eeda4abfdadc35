//! Ctrl-C, and other external ends.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::{Trial, local_run};
use training_operator_testing::processes;

/// The time of processes between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// A worker that ignores SIGTERM, with children inside its process group, outside of the group, and outside of the
/// session.
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
    ended.only(&["training-operator: stopping; a second signal kills the processes at once"]);
    assert_eq!(ended.conditions("spirals"), ["Created", "Running"]);
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
    run.line(&["stopping; a second signal kills the processes at once"]);
    run.signal(Signal::INT);
    let ended = run.end();
    assert!(asked.elapsed() < GRACE, "{:?}", asked.elapsed());
    ended.expect_code(130);
    ended.only(&["training-operator: killed"]);
}

/// One signal is sufficient. The end takes the grace period.
#[test]
fn processes_that_ignore_sigterm_are_killed_after_the_grace_period() {
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

/// The output of a stopping process is useful.
#[test]
fn last_words_are_heard() {
    let trial = Trial::new();
    let script = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let mut run = trial.run(&Manifest::shell("careful", 1, script));
    run.line(&["worker-0 | up"]);
    run.signal(Signal::INT);
    let ended = run.end();
    ended.expect_code(130);
    ended.only(&["worker-0 | saved"]);
    assert_eq!(ended.table()["worker-0"].exit, Some(0));
}

/// `| head` closes the pipe after some lines.
#[test]
fn a_reader_that_goes_away_does_not_end_the_job() {
    let trial = Trial::new();
    let done = trial.dir.join("done");
    let script = "echo one; echo two; sleep 0.2; echo three; touch done";
    let file = trial.write(&Manifest::shell("piped", 1, script));
    let run = local_run();
    let mut shell = Command::new("sh");
    shell.args(["-c", "{ \"$0\" \"$@\"; echo \"code $?\" >&2; } | head -n 1"]);
    shell.arg(run.get_program()).args(run.get_args()).arg(file);
    let ended = Run::start(&mut shell).end_anyhow();
    assert_eq!(ended.err, ["code 0"]);
    assert!(done.exists());
}

/// Only the guard is left to stop the processes.
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
