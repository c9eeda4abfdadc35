//! The replicas that still run when the job has ended.

use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::trial::Trial;

/// In a cluster `None` leaves them running. Here they end with the command that started them.
#[test]
fn survivors_of_clean_pod_policy_none_end_with_the_run() {
    let trial = Trial::new();
    let job = Manifest::roles(
        "keeps",
        &[("Scheduler", 1, "exit 0"), ("Worker", 2, "exec sleep 1000")],
    );
    let ended = trial.run(&job.policy("cleanPodPolicy", "None")).end();
    ended.expect_code(0);
    assert_eq!(ended.conditions("keeps").last(), Some(&"Succeeded"));
    let table = ended.table();
    for name in ["worker-0", "worker-1"] {
        assert_eq!(table[name].phase, "Stopped", "{}", ended.transcript());
    }
}

/// A daemon with neither the variables nor the session of its pod has only its parent to be found by.
#[test]
fn a_daemon_that_left_its_session_ends_with_the_run() {
    let trial = Trial::new();
    let start =
        "env -i /usr/bin/setsid /bin/sh -c '(sleep 998 >/dev/null 2>&1 & echo pid $!; wait) &'; sleep 0.2";
    let ended = trial.run(&Manifest::shell("daemon", 1, start)).end();
    ended.expect_code(0);
    let line = ended.only(&["worker-0 | pid "]);
    let pid = line.rsplit(' ').next().unwrap();
    assert!(
        !std::path::Path::new("/proc").join(pid).exists(),
        "{}",
        ended.transcript()
    );
}

/// All pods are deleted, but the summary still shows how they ended.
#[test]
fn clean_pod_policy_all_loses_nothing_of_the_summary() {
    let trial = Trial::new();
    let job = Manifest::roles("goes", &[("Scheduler", 1, "echo done"), ("Worker", 2, "exit 0")]);
    let ended = trial.run(&job.policy("cleanPodPolicy", "All")).end();
    ended.expect_code(0);
    ended.only(&["scheduler-0 | done"]);
    ended.expect_all_succeeded(&["scheduler-0", "worker-0", "worker-1"], 0);
}

/// The job is deleted at the end of its time to live.
#[test]
fn a_job_without_time_to_live_is_still_summed_up() {
    let trial = Trial::new();
    let job = Manifest::shell("brief", 1, "echo done").policy("ttlSecondsAfterFinished", 0);
    let ended = trial.run(&job).end();
    ended.expect_code(0);
    assert_eq!(ended.conditions("brief").last(), Some(&"Succeeded"));
    ended.only(&["worker-0 | done"]);
}
