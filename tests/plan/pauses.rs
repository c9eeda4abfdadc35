//! Pauses between restarts after repeated failures, and the failures that a status keeps.

use jiff::{SignedDuration, Timestamp};

use crate::harness::{PlanHarness, Stories};

/// Fails the worker after it ran for this many seconds. Returns the number of seconds until its restart.
fn fails_after(w: &mut PlanHarness, seconds: i64) -> i64 {
    let started = w.now;
    w.after(seconds).pod("worker-0").exits(137);
    w.end_of("worker-0").started_at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(started));
    let failed = w.now;
    w.all_replaced();
    w.now.duration_since(failed).as_secs()
}

#[test]
fn pauses_grow_while_attempts_fail_soon() {
    for scope in ["Job", "Role", "Replica"] {
        let fields = format!("restartScope: {scope}");
        let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", &fields).started();
        let pauses: Vec<_> = (0..8).map(|_| fails_after(&mut w, 5)).collect();
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 300, 300], "{scope}");
        assert_eq!(fails_after(&mut w, 600), 0, "{scope}: it had begun its work");
        assert_eq!(
            [fails_after(&mut w, 1), fails_after(&mut w, 1)],
            [0, 10],
            "{scope}"
        );
        w.suspend(true).reconcile().finish_deletions().reconcile();
        w.suspend(false).reconcile().all_running();
        assert_eq!(fails_after(&mut w, 1), 0, "{scope}: it begins anew");
    }
}

#[test]
fn a_pause_is_reported_and_looked_at_when_it_ends() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", "").started();
    fails_after(&mut w, 1);
    w.pod("worker-0").exits(137);
    w.reconcile_once().reconcile_once().finish_deletions();
    let plan = w.plan();
    let end = w.now + SignedDuration::from_secs(10);
    assert_eq!(plan.requeue.unwrap().at, end);
    assert_eq!(
        plan.notices[0].message,
        "2 attempts in a row failed within ten minutes of their start; the next one starts 10 s after the last failure"
    );
    assert!(plan.create_pods.is_empty());
}

#[test]
fn disrupted_and_deleted_replicas_restart_without_a_pause() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", "").started();
    for _ in 0..4 {
        let before = w.now;
        w.pod("worker-0").deleted_by_user().all_replaced();
        assert_eq!(w.now, before);
    }
}

/// The kubelet of a node without memory or disk rejects pods until the scheduler knows of it. Without a pause, all
/// restarts of a job would be used up in that time.
#[test]
fn a_pod_that_its_kubelet_rejects_is_replaced_after_a_pause() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", "").started();
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let rejected = w.now;
        let message = "Pod was rejected: The node had condition: [DiskPressure]. ";
        w.pod("worker-0").taken("Failed", "Evicted", message);
        w.all_replaced();
        pauses.push(w.now.duration_since(rejected).as_secs());
    }
    assert_eq!(pauses, [10, 20, 40]);
}

#[test]
fn a_pause_that_cannot_be_is_none() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "").started();
    fails_after(&mut w, 1);
    w.edit(|job| {
        let backoff = &mut job.status.as_mut().unwrap().recovery.backoff;
        let until = "9999-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        backoff.values_mut().for_each(|b| {
            b.until = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(until));
            b.failures = i32::MAX;
        });
    });
    w.pod("worker-0").vanishes();
    let before = w.now;
    w.reconcile();
    assert_eq!((w.pod_names(), w.now), (vec!["worker-0".to_owned()], before));
    w.all_running();
    assert_eq!(fails_after(&mut w, 1), 300);
}

#[test]
fn a_container_that_never_ran_is_retried_unless_its_command_is_at_fault() {
    let command =
        r#"unable to start container process: exec: "train": executable file not found in $PATH: unknown"#;
    let driver = "nvidia-container-cli: initialization error: driver rpc error: timed out: unknown";
    for reason in ["StartError", "ContainerCannotRun"] {
        for (message, code, restarts) in [
            (command, 128, 0),
            (command, 127, 0),
            (driver, 128, 1),
            ("", 127, 1),
        ] {
            let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", "backoffLimit: 1").started();
            let mut fail = || {
                w.pod("worker-0").exits(code);
                let end = w.end_of("worker-0");
                (end.reason, end.message) = (Some(reason.to_owned()), Some(message.to_owned()));
                w.reconcile().finish_deletions().reconcile();
                w.after(100).all_running();
                w.state()
            };
            for _ in 0..restarts {
                assert_eq!(fail(), "Created Running", "{reason} {code} {message}");
            }
            assert_eq!(fail(), "Created Failed", "{reason} {code} {message}");
            assert_eq!(w.status().restart_count, restarts, "{reason} {code} {message}");
        }
    }
}

#[test]
fn the_status_keeps_the_latest_failures_and_a_success_has_none() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "").started();
    for code in [129, 130, 131, 132, 133, 134, 135] {
        w.after(700).pod("worker-0").exits(code).all_replaced();
    }
    let codes = |w: &PlanHarness| -> Vec<i32> {
        let history = w.status().failure_history;
        history.iter().filter_map(|failure| failure.exit_code).collect()
    };
    assert_eq!(w.status().failure.unwrap().exit_code, Some(135));
    assert_eq!(codes(&w), [130, 131, 132, 133, 134]);
    assert_eq!(w.pod("worker-0").succeeds().reconcile().status().failure, None);
    assert_eq!(codes(&w), vec![131, 132, 133, 134, 135]);
}

#[test]
fn each_restart_scope_has_a_pause_of_its_own() {
    for (scope, key) in [("Job", "job"), ("Role", "Worker"), ("Replica", "worker-0")] {
        let mut w =
            PlanHarness::train("Scheduler=1 Worker=1:ExitCode", &format!("restartScope: {scope}")).started();
        fails_after(&mut w, 5);
        let keys: Vec<_> = w.status().recovery.backoff.into_keys().collect();
        assert_eq!(keys, [key]);
    }
}
