//! Restart policies and exit codes: final and retryable failures (#3, #9, #18).

use crate::harness::{PlanHarness, Stories};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Fails,
    Restarts,
}
use Then::{Fails, Restarts};

fn after_exit(mut harness: PlanHarness, code: i32) -> Then {
    harness = harness.started();
    harness.pod("worker-0").exits(code).reconcile();
    match &*harness.state() {
        "Created Failed" => {
            assert_eq!(harness.status().restart_count, 0);
            Fails
        }
        "Created Restarting" => {
            assert_eq!(harness.status().restart_count, 1);
            assert_eq!(harness.pod_names(), ["worker-0"]);
            Restarts
        }
        other => panic!("after exit {code}: {other:?}"),
    }
}

#[test]
fn the_policy_and_the_exit_code_decide() {
    let by_code = |code| if code >= 128 { Restarts } else { Fails };
    type Rule = fn(i32) -> Then;
    let table: [(&str, Rule); 4] = [
        ("Never", |_| Fails),
        ("OnFailure", |_| Restarts),
        ("Always", |_| Restarts),
        ("ExitCode", by_code),
    ];
    for (policy, then) in table {
        for code in [1, 2, 126, 127, 128, 130, 137, 138, 139, 143, 255] {
            let harness = PlanHarness::train(&format!("Worker=1:{policy}"), "backoffLimit: 9");
            assert_eq!(after_exit(harness, code), then(code), "{policy} {code}");
        }
    }
}

#[test]
fn the_kubelet_leaves_an_exit_code_to_the_operator() {
    let mut w = PlanHarness::train("Scheduler=1:ExitCode Server=1:Always Worker=1:OnFailure", "");
    w.reconcile();
    let policy = |name: &str| w.pods[name].spec.clone().unwrap().restart_policy.unwrap();
    assert_eq!(policy("job-scheduler-0"), "Never");
    assert_eq!(policy("job-server-0"), "Always");
    assert_eq!(policy("job-worker-0"), "OnFailure");
}

#[test]
fn a_permanent_exit_code_fails_the_job_once_and_for_all() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "ttlSecondsAfterFinished: 9").started();
    w.events.clear();
    assert_eq!(w.pod("worker-1").exits(1).reconcile().state(), "Created Failed");
    assert_eq!(w.event_reasons(), ["ToyJobFailed"], "and no restart");
    assert_eq!(
        w.events[0].message,
        "job \"job\" is failing because \"Worker\" replica(s) failed. (job-worker-1: exit code 1)"
    );
    assert!(
        w.status().completion_time.is_some(),
        "so that the time to live can pass"
    );
    w.after(9).reconcile();
    assert!(w.job_deleted);
}

#[test]
fn a_retryable_sibling_of_a_final_failure_is_not_restarted() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "").started();
    w.pod("worker-1").exits(1);
    w.after(1).pod("worker-0").exits(137).reconcile();
    assert_eq!(w.state(), "Created Failed");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn policies_differ_between_roles() {
    let mut w = PlanHarness::train("Scheduler=1:Never Server=1:ExitCode Worker=1:Never", "").started();
    w.pod("server-0").exits(137);
    assert_eq!(w.reconcile().state(), "Created Restarting");
    assert_eq!(w.all_replaced().state(), "Created Running");
    w.pod("worker-0").exits(137);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn the_frameworks_container_decides_alone() {
    // Container and exit code, and the resulting state under ExitCode.
    for (failing, code, then) in [
        ("side", 137, "Succeeded"),
        ("side", 1, "Succeeded"),
        ("toy", 137, "Restarting"),
        ("toy", 1, "Failed"),
    ] {
        let w = PlanHarness::train("Worker=1:ExitCode", "");
        let mut w = w.with_container("side", false).started();
        w.pod("worker-0").exits_in(failing, code);
        assert_eq!(
            w.reconcile().state(),
            format!("Created {then}"),
            "{failing} {code}"
        );
        let failure = w.status().failure;
        let container = failure.and_then(|failure| failure.container);
        assert_eq!(container.as_deref(), Some("toy").filter(|_| failing == "toy"));
    }
}

#[test]
fn a_pod_that_fails_without_a_word_is_tried_again_unless_never() {
    for (policy, then) in [
        ("ExitCode", "Restarting"),
        ("OnFailure", "Restarting"),
        ("Always", "Restarting"),
        ("Never", "Failed"),
    ] {
        let mut w = PlanHarness::train(&format!("Worker=1:{policy}"), "").started();
        w.pod("worker-0")
            .taken("Failed", "UnexpectedAdmissionError", "no such device");
        assert_eq!(w.reconcile().state(), format!("Created {then}"), "{policy}");
        assert_eq!(w.status().failure.unwrap().reason, "UnexpectedAdmissionError");
    }
}

#[test]
fn a_restart_ends_with_the_replica_running_again() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "").started();
    w.pod("worker-0").exits(1).reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(w.counts("Worker"), (0, 0, 0), "the failed pod is of the past");
    assert_eq!(w.all_running().state(), "Created Running");
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

/// An operator treats a larger number in a status as another writer's, and replaces it.
#[test]
fn no_number_of_restarts_is_written_that_would_not_be_believed() {
    const MAX_RESTARTS: i32 = 500_000_000;
    let mut w = PlanHarness::train("Worker=2:OnFailure", "restartScope: Replica").started();
    let pod = w.pod("worker-0").object();
    let container = &mut pod.status.as_mut().unwrap().container_statuses.as_mut().unwrap()[0];
    container.restart_count = i32::MAX;
    assert_eq!(w.reconcile().status().restart_count, MAX_RESTARTS);
    assert_eq!(w.status().recovery.in_place["worker-0"], MAX_RESTARTS);

    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "").started();
    let mut status = w.status();
    status.recovery.job = MAX_RESTARTS;
    status.recovery.started.clear();
    w.edit(|job| job.status = Some(status)).all_replaced();
    w.pod("worker-0").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(
        w.status().recovery.job,
        0,
        "after the last attempt the first follows"
    );
    assert_eq!(w.all_running().state(), "Created Running");
}
