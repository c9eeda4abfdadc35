//! The end of a pod whose replica has ended before its sidecar: the sidecar has time to finish its work.

use jiff::SignedDuration;

use crate::containers::with_sidecar;
use crate::harness::PlanHarness;

/// Returns a job of one worker that has ended with this code, and its sidecar runs on.
fn ended(fields: &str, code: i32) -> PlanHarness {
    let mut w = with_sidecar("Worker=1", fields, false).started();
    w.pod("worker-0").main_container_ends(code).reconcile();
    w
}

#[test]
fn a_sidecar_that_ends_in_time_leaves_its_pod() {
    for (code, state) in [(0, "Succeeded"), (3, "Failed")] {
        let mut w = ended("", code);
        assert_eq!(w.state(), format!("Created {state}"));
        assert_eq!(w.pod_names(), ["worker-0"], "{code}");
        assert_eq!(w.service_names(), ["worker-0"], "{code}");
        assert_eq!(
            w.plan().requeue.unwrap().at,
            w.now + SignedDuration::from_secs(600)
        );
        assert_eq!(w.after(599).reconcile().pod_names(), ["worker-0"], "{code}");
        w.pod("worker-0").exits(code).after(10_000).reconcile();
        assert_eq!(w.pod_names(), ["worker-0"], "{code}: a pod that has ended stays");
        assert_eq!(w.plan().requeue, None);
    }
}

#[test]
fn a_sidecar_that_never_ends_is_deleted_at_the_bound() {
    for (fields, seconds) in [
        ("", 600),
        ("cleanPodPolicy: Running", 600),
        ("sidecarGracePeriodSeconds: 30", 30),
        ("sidecarGracePeriodSeconds: 7200", 7_200),
        ("activeDeadlineSeconds: 100", 100),
        ("activeDeadlineSeconds: 1000", 600),
    ] {
        let mut w = ended(fields, 0);
        assert_eq!(w.pod_names(), ["worker-0"], "{fields}");
        assert_eq!(
            w.plan().requeue.unwrap().at,
            w.now + SignedDuration::from_secs(seconds),
            "{fields}"
        );
        w.after(seconds - 1).reconcile();
        assert_eq!(w.pod_names(), ["worker-0"], "{fields}");
        assert_eq!(w.after(1).reconcile().pod_names(), ["(worker-0)"], "{fields}");
    }
    for fields in ["cleanPodPolicy: All", "sidecarGracePeriodSeconds: 0"] {
        assert_eq!(ended(fields, 0).pod_names(), ["(worker-0)"], "{fields}");
    }
    let mut kept = ended("cleanPodPolicy: None", 0);
    assert_eq!(kept.after(100_000).reconcile().pod_names(), ["worker-0"]);
}

#[test]
fn replicas_that_still_train_get_no_time() {
    let mut w = with_sidecar("Scheduler=1 Worker=2", "", false).started();
    w.pod("scheduler-0").main_container_ends(0).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    assert_eq!(w.pod_names(), ["scheduler-0", "(worker-0)", "(worker-1)"]);
}

#[test]
fn a_job_that_failed_by_its_deadline_gives_its_sidecars_no_time() {
    let mut w = with_sidecar("Worker=2", "activeDeadlineSeconds: 100", false).started();
    w.pod("worker-0").main_container_ends(0);
    assert_eq!(w.after(100).reconcile().state(), "Created Failed");
    assert_eq!(w.pod_names(), ["(worker-0)", "(worker-1)"]);
}

#[test]
fn a_restart_does_not_wait_for_sidecars() {
    let mut w = with_sidecar("Worker=2:ExitCode", "", false).started();
    w.pod("worker-0").main_container_ends(137).reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(w.pod_names(), ["(worker-0)", "(worker-1)"]);
}

#[test]
fn a_job_whose_time_to_live_ends_waits_for_its_sidecars() {
    let mut w = ended("ttlSecondsAfterFinished: 5", 0);
    assert!(!w.after(100).plan().delete_job);
    let mut at_the_bound = w.clone();
    at_the_bound.after(500).reconcile();
    assert!(at_the_bound.job_deleted);
    w.pod("worker-0").succeeds();
    assert!(w.plan().delete_job);
}
