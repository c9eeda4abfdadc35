//! Jobs that are invalid, and are fixed or broken by an edit (#12, #13).

use crate::harness::{PlanHarness, Stories};

#[test]
fn an_invalid_job_fails_once_and_is_not_tried_again() {
    let mut w = PlanHarness::train("Worker=-1", "");
    assert!(w.plan().refused);
    w.reconcile();
    assert_eq!(w.conditions(), ["Failed=True(ToyJobFailedValidation)"]);
    let message =
        "ToyJob job failed validation: spec.replicaSpecs.Worker.replicas: must be at least 0 (is -1)";
    assert_eq!(w.status().conditions[0].message, message);
    assert!(w.status().completion_time.is_some());
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.reason.as_str(), "ToyJobFailedValidation");
    assert_eq!(failure.message.as_str(), message);
    w.after(3_600).restart_operator().reconcile();
    assert_eq!(w.event_reasons(), vec!["ToyJobFailedValidation"]);
    assert_eq!(w.events[0].message.as_str(), message);
    assert!(w.events[0].warning && w.created.is_empty());
}

#[test]
fn a_corrected_job_starts_anew() {
    let mut w = PlanHarness::train("Worker=-1", "");
    assert_eq!(w.reconcile().scale("Worker", 1).reconcile().state(), "Created");
    assert_eq!(w.status().failure, None);
    assert_eq!(w.status().completion_time, None);
    w.all_running().pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn another_error_gets_its_own_event() {
    let mut w = PlanHarness::train("Worker=-1", "");
    w.reconcile().scale("Worker", 1_000_000).reconcile();
    assert_eq!((w.state(), w.events.len()), ("Failed".to_owned(), 2));
    assert!(
        w.status().conditions[0].message.contains("must be at most 10000"),
        "{}",
        w.status().conditions[0].message
    );
}

#[test]
fn a_negative_time_to_live_deletes_no_job() {
    let mut w = PlanHarness::train("Worker=1", "ttlSecondsAfterFinished: -5");
    w.reconcile();
    assert!(!w.job_deleted, "its owner must be able to read what is wrong");
    assert_eq!(w.state(), "Failed");
}

#[test]
fn a_mistake_in_a_running_job_costs_no_training() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    let before = (w.status(), w.pod_names());
    w.scale("Worker", -1);
    let plan = w.plan();
    assert!(plan.status.is_none() && plan.delete.is_empty() && plan.create_pods.is_empty());
    assert_eq!(plan.events.len(), 1);
    w.scale("Worker", 1).reconcile();
    assert_eq!((w.status(), w.pod_names()), before);
}

#[test]
fn a_mistake_in_a_finished_job_changes_nothing() {
    let mut w = PlanHarness::train("Worker=1", "").started();
    w.pod("worker-0").succeeds().reconcile().scale("Worker", -1);
    assert!(w.plan().is_idle());
}

#[test]
fn a_job_that_failed_before_its_start_does_not_count_as_invalid() {
    // Another operator may have left the job this way.
    let mut w = PlanHarness::train("Worker=1:Never", "").started();
    w.pod("worker-0").exits(1).reconcile();
    w.edit(|job| job.status.as_mut().unwrap().start_time = None);
    let before = w.status();
    assert_eq!(w.reconcile().status(), before, "it does not begin anew");
    w.scale("Worker", -1);
    assert!(w.plan().is_idle(), "and no mistake is reported");
}

#[test]
fn a_suspended_job_may_become_invalid_and_valid_again() {
    let mut w = PlanHarness::train("Worker=1", "suspend: true");
    w.reconcile().scale("Worker", -1).reconcile();
    assert_eq!(w.state(), "Created Suspended Failed");
    assert_eq!(w.scale("Worker", 1).reconcile().state(), "Created Suspended");
    assert_eq!(w.suspend(false).reconcile().pod_names(), ["worker-0"]);
}
