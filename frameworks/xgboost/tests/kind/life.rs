//! Scenarios of XGBoostJobs: the recorded ones, and those in which a job hangs or fails without reason under the Go
//! operator.

use training_job_testbed::PlanHarness;
use training_job_xgboost::XGBoostJob;

fn started(roles: &str) -> PlanHarness<XGBoostJob> {
    PlanHarness::with(roles, "runPolicy: {}").started()
}

/// Returns the reason and the message of the last condition of a type that holds.
fn reason_and_message(harness: &PlanHarness<XGBoostJob>, kind: &str) -> (String, String) {
    let held = harness.held(kind);
    held.map_or_else(Default::default, |c| (c.reason, c.message))
}

#[test]
fn the_master_decides() {
    let mut w = PlanHarness::<XGBoostJob>::with("Master=1 Worker=2:ExitCode", "runPolicy: {}");
    w.reconcile().pod("worker-0").running().pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created", "the master does not run yet");
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(reason_and_message(&w, "Created").1, "XGBoostJob job is created.");
    assert_eq!(
        reason_and_message(&w, "Running"),
        ("XGBoostJobRunning".into(), "XGBoostJob job is running.".into())
    );
    w.pod("worker-0").succeeds().pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("master-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(
        reason_and_message(&w, "Succeeded"),
        (
            "XGBoostJobSucceeded".into(),
            "XGBoostJob job is successfully completed.".into()
        )
    );
    assert_eq!(w.counts("Worker"), (0, 2, 0));
}

#[test]
fn a_killed_worker_restarts_the_whole_job() {
    let mut w = started("Master=1:ExitCode Worker=2:ExitCode");
    w.pod("worker-1").exits(137).reconcile();
    assert_eq!(
        reason_and_message(&w, "Restarting"),
        (
            "XGBoostJobRestarting".into(),
            "job job is restarting because Worker replica(s) failed.".into()
        )
    );
    w.finish_deletions().reconcile();
    assert!(
        w.attempts().values().all(|&attempt| attempt == 1),
        "{:?}",
        w.attempts()
    );
    assert_eq!(w.all_running().state(), "Created Running");
}

#[test]
fn a_wrong_exit_code_is_final() {
    let mut w = started("Master=1 Worker=2:ExitCode");
    w.pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        reason_and_message(&w, "Failed"),
        (
            "XGBoostJobFailed".into(),
            "job \"job\" is failing because \"Worker\" replica(s) failed.".into()
        )
    );
    assert!(w.status().completion_time.is_some());
}

#[test]
fn the_message_of_a_failure_names_an_xgboostjob() {
    let mut w = started("Master=1 Worker=2:Never");
    w.pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        reason_and_message(&w, "Failed").1,
        "XGBoostJob job is failed because 1 Worker replica(s) failed."
    );
}

/// The Go operator deletes the pod to restart it, and sets the job to Failed in the same reconcile.
#[test]
fn restart_policy_on_failure_restarts_a_failed_replica() {
    let mut w = started("Master=1:OnFailure Worker=1:OnFailure");
    w.pod("worker-0").evicted();
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.all_running().state(), "Created Running");
}

#[test]
fn a_lone_master_restarts_alone() {
    let mut w = started("Master=1:ExitCode");
    w.pod("master-0").exits(137).reconcile().all_running();
    w.pod("master-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_job_without_a_master_is_invalid() {
    for roles in ["Worker=1", "Master=0 Worker=2", "Master=2"] {
        let mut w = PlanHarness::<XGBoostJob>::with(roles, "runPolicy: {}");
        assert_eq!(w.reconcile().state(), "Failed", "{roles}");
        assert!(w.pods.is_empty());
    }
}
