//! The root cause of a failure in the status.

use training_job::plan::observed::MAX_MESSAGE;
use training_job_testing::PodScript;

use crate::harness::{PlanHarness, Stories};

#[test]
fn the_failure_names_replica_container_code_signal_and_time() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "").started();
    w.after(42).pod("worker-1").exits(137).reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(
        serde_json::to_value(&failure).unwrap(),
        serde_json::json!({
            "role": "Worker", "index": 1, "pod": "job-worker-1", "container": "toy",
            "exitCode": 137, "signal": 9, "reason": "Error", "time": "2026-01-01T00:00:42Z",
            "summary": "worker-1: exit 137",
        })
    );
}

#[test]
fn of_several_failures_the_first_is_the_cause() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=2", "").started();
    w.after(10).pod("worker-1").exits(3);
    w.after(1).pod("worker-0").exits(1);
    w.after(1).pod("scheduler-0").exits(255).reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.pod.as_deref(), Some("job-worker-1"));
    assert_eq!(failure.exit_code, Some(3));
    assert_eq!(
        w.message_of("Failed"),
        "ToyJob job is failed because 2 Worker replica(s) failed."
    );
}

#[test]
fn of_containers_that_failed_together_the_frameworks_is_the_cause() {
    for first in ["side", "toy"] {
        let w = PlanHarness::train("Worker=1", "");
        let mut w = w.with_container("side", first == "side").started();
        w.pod("worker-0").exits_in_all(3).reconcile();
        assert_eq!(
            w.status().failure.unwrap().container.as_deref(),
            Some("toy"),
            "{first}"
        );
    }
}

#[test]
fn later_ends_of_survivors_do_not_hide_the_cause() {
    // A final failure.
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "cleanPodPolicy: None").started();
    w.pod("worker-1").exits(3).reconcile();
    w.after(5).pod("worker-0").exits(1).reconcile();
    assert_eq!(w.status().failure.unwrap().exit_code, Some(3));
    // A restart.
    let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=2:OnFailure", "").started();
    w.pod("worker-1").exits(3).reconcile();
    w.after(5).pod("worker-0").exits(1).pod("scheduler-0").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.status().failure.unwrap().exit_code, Some(3));
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn the_container_that_failed_first_is_named() {
    let w = PlanHarness::train("Worker=1", "");
    let mut w = w.with_container("side", true).started();
    let later = w.now + jiff::SignedDuration::from_secs(9);
    w.pod("worker-0").exits(3);
    // The sidecar ended as a consequence, 9 seconds later.
    let pod = w.pod("worker-0").object();
    let ended = PodScript::new(pod, later).terminated(1);
    let status = pod.status.as_mut().unwrap();
    status.container_statuses.as_mut().unwrap()[0].state = Some(ended);
    w.reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.container.as_deref(), Some("toy"));
    assert_eq!(failure.exit_code, Some(3));
}

#[test]
fn at_the_limit_the_last_failure_is_reported() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "backoffLimit: 0").started();
    w.pod("worker-0").exits(137).reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.reason, "BackoffLimitExceeded");
    assert_eq!(
        failure.message,
        "backoffLimit 0 is used up; the last failure: Error"
    );
    assert_eq!(failure.pod.as_deref(), Some("job-worker-0"));
    assert_eq!(failure.signal, Some(9));
}

#[test]
fn at_the_limit_the_summary_and_the_event_have_the_reason_of_the_failure() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "backoffLimit: 0").started();
    w.pod("worker-0").exits(137);
    w.end_of("worker-0").reason = Some("OOMKilled".to_owned());
    let plan = w.plan();
    let failure = plan.status.unwrap().status.failure.unwrap();
    assert_eq!(
        failure.summary,
        "worker-0: exit 137 (OOMKilled, BackoffLimitExceeded)"
    );
    let event = &plan.events.last().unwrap().message;
    assert!(
        event.ends_with("(job-worker-0: OOMKilled, exit code 137)"),
        "{event}"
    );
}

#[test]
fn a_restart_in_place_at_the_limit_reports_the_end_of_the_container() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "backoffLimit: 0").started();
    w.pod("worker-0").restarts_in_place(139).reconcile();
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.pod.as_deref(), Some("job-worker-0"));
    assert_eq!(failure.exit_code, Some(139));
    assert_eq!(failure.signal, Some(11));
}

#[test]
fn a_message_has_a_bound() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "backoffLimit: 0").started();
    w.pod("worker-0").exits(137);
    w.end_of("worker-0").message = Some("é".repeat(5_000));
    w.reconcile();
    let message = w.status().failure.unwrap().message;
    assert!(
        message.len() <= MAX_MESSAGE && message.starts_with("backoffLimit 0 is used up"),
        "{}",
        message.len()
    );
}
