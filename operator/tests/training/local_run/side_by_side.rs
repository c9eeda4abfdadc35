//! Several jobs on one machine that all use the same port.

use training_operator_testing::local_run::manifest::{Manifest, examples};
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::{Trial, train};

use super::training::expect_trained;

/// Both jobs have the same name as well.
#[test]
fn two_operators_do_not_disturb_each_other() {
    let trial = Trial::of_jobs(2);
    let job = Manifest::example("train.yaml").env("PAUSE", "0.02");
    let runs = [(); 2].map(|()| trial.train(&job));
    for run in runs {
        let ended = run.end();
        ended.expect_code(0);
        expect_trained(&ended, "");
    }
}

#[test]
fn lines_of_two_jobs_of_one_run_have_their_names() {
    let trial = Trial::of_jobs(2);
    let files = ["north", "south"].map(|name| trial.write(&Manifest::example("train.yaml").named(name)));
    let ended = Run::start(train(&examples()).args(files)).end();
    ended.expect_code(0);
    for name in ["north", "south"] {
        expect_trained(&ended, &format!("{name}-"));
        assert_eq!(ended.conditions(name), ["Created", "Running", "Succeeded"]);
    }
    let table = ended.table();
    assert_eq!(table.len(), 10);
    assert!(
        table.values().all(|row| row.exit == Some(0)),
        "{}",
        ended.transcript()
    );
}

/// The run fails because of the bad job, but completes the other one.
#[test]
fn a_failed_job_does_not_stop_the_other() {
    let trial = Trial::new();
    let good = trial.write(&Manifest::shell("good", 1, "echo done"));
    let bad = trial.write(&Manifest::shell("bad", 1, "exit 3"));
    let ended = Run::start(training_operator_testing::local_run::trial::local_run().args([bad, good])).end();
    ended.expect_code(1);
    ended.only(&["good-worker-0 | done"]);
    assert_eq!(ended.conditions("good").last(), Some(&"Succeeded"));
    assert_eq!(ended.conditions("bad").last(), Some(&"Failed"));
}
