//! `activeDeadlineSeconds` and `ttlSecondsAfterFinished` (#9, #21, #25).

use jiff::SignedDuration;

use crate::harness::{PlanHarness, Stories};

#[test]
fn the_deadline_applies_at_its_time_and_schedules_a_reconcile() {
    let mut w = PlanHarness::train(
        "Scheduler=1 Worker=1",
        "activeDeadlineSeconds: 60, cleanPodPolicy: None",
    )
    .started();
    let due = w.status().start_time.unwrap().0 + SignedDuration::from_secs(60);
    let wake = w.plan().requeue.expect("a timer");
    assert_eq!((wake.at, wake.why), (due, "activeDeadlineSeconds"));
    w.now = due - SignedDuration::from_secs(1);
    assert_eq!(w.reconcile().state(), "Created Running");
    w.now = due;
    w.events.clear();
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(
        w.message_of("Failed"),
        "Job job has failed because it was active longer than specified deadline"
    );
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.reason.as_str(), "DeadlineExceeded");
    assert_eq!(failure.time.unwrap().0, due);
    assert_eq!(
        failure.message,
        "the job did not end within activeDeadlineSeconds (60 s)"
    );
    assert!(w.events[0].warning && w.events.len() == 1);
    assert_eq!(
        w.pod_names(),
        ["(scheduler-0)", "(worker-0)"],
        "a limit stops what runs under any policy"
    );
    assert_eq!(w.counts("Worker"), (0, 0, 0));
}

#[test]
fn fractions_of_a_second_move_no_deadline() {
    let mut w = PlanHarness::train("Worker=1", "activeDeadlineSeconds: 5");
    w.now += SignedDuration::from_millis(900);
    let mut w = w.started();
    w.now = w.plan().requeue.unwrap().at;
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn a_restart_buys_no_time() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "activeDeadlineSeconds: 60").started();
    let due = w.plan().requeue.unwrap();
    w.after(30).pod("worker-0").exits(1).reconcile();
    assert_eq!(w.plan().requeue, Some(due));
}

#[test]
fn success_at_the_last_second_is_success() {
    let mut w = PlanHarness::train("Worker=1", "activeDeadlineSeconds: 60").started();
    w.after(60).pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_deadline_of_zero_is_at_once() {
    let mut w = PlanHarness::train("Worker=1", "activeDeadlineSeconds: 0");
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert!(w.created.is_empty());
}

#[test]
fn a_deadline_beyond_the_end_of_time_never_comes() {
    let mut w = PlanHarness::train("Worker=1", "activeDeadlineSeconds: 9223372036854775807").started();
    assert_eq!(w.state(), "Created Running".to_owned());
    assert_eq!(w.plan().requeue, None);
    assert_eq!(w.after(100_000_000).reconcile().state(), "Created Running");
}

#[test]
fn the_time_to_live_begins_at_the_end() {
    for (roles, end) in [("Worker=1", 0), ("Worker=1", 1), ("Worker=1:ExitCode", 1)] {
        let mut w = PlanHarness::train(roles, "ttlSecondsAfterFinished: 10").started();
        assert_eq!(w.plan().requeue, None);
        w.after(100);
        if end == 0 {
            w.pod("worker-0").succeeds();
        } else {
            w.pod("worker-0").exits(end);
        }
        w.reconcile();
        let wake = w.plan().requeue.expect("a timer");
        assert_eq!(wake.at, w.now + SignedDuration::from_secs(10));
        assert_eq!(wake.why, "ttlSecondsAfterFinished");
        w.after(9).reconcile();
        assert!(!w.job_deleted);
        w.after(1).reconcile();
        assert!(w.job_deleted);
    }
}

#[test]
fn a_time_to_live_of_zero_is_over_as_soon_as_the_end_is_stored() {
    let mut w = PlanHarness::train("Worker=1", "ttlSecondsAfterFinished: 0").started();
    w.pod("worker-0").succeeds().reconcile_once();
    assert!(
        !w.job_deleted && w.state().contains("Succeeded"),
        "the end can be seen"
    );
    w.reconcile();
    assert!(w.job_deleted);
}

#[test]
fn a_job_that_the_go_operator_left_without_completion_time_gets_one() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "ttlSecondsAfterFinished: 10").started();
    w.after(5).pod("worker-0").exits(1).reconcile();
    let ended = w.now;
    w.edit(|job| job.status.as_mut().unwrap().completion_time = None);
    assert_eq!(w.after(7).reconcile().status().completion_time.unwrap().0, ended);
    w.after(3).reconcile();
    assert!(w.job_deleted);
}

/// The same as under an operator that accepted more jobs as valid.
#[test]
fn a_finished_job_without_completion_time_gets_one_also_if_its_spec_is_invalid() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "ttlSecondsAfterFinished: 10").started();
    w.after(5).pod("worker-0").exits(1).reconcile();
    let ended = w.now;
    w.edit(|job| job.status.as_mut().unwrap().completion_time = None);
    w.scale("Worker", -1).after(7).reconcile();
    assert_eq!(w.status().completion_time.unwrap().0, ended);
    w.after(3).reconcile();
    assert!(w.job_deleted);
}
