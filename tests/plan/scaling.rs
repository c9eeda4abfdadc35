//! Replicas and roles that change while the job runs (#4, #6, #7, #51).

use crate::harness::{PlanHarness, Stories};

#[test]
fn more_workers_are_made_and_the_old_ones_stay_as_they_are() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    let old = w.pods["job-worker-0"].clone();
    w.scale("Worker", 3).reconcile();
    assert_eq!(w.pod_names(), ["scheduler-0", "worker-0", "worker-1", "worker-2"]);
    assert_eq!(w.service_names(), w.pod_names());
    assert_eq!(
        w.pods["job-worker-0"], old,
        "pods keep the environment they were born with"
    );
    w.all_running();
    assert_eq!(
        (w.state(), w.counts("Worker"), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], (3, 0, 0), 0)
    );
}

#[test]
fn surplus_workers_go_once_and_are_no_failures() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=3", "backoffLimit: 0").started();
    w.created.clear();
    w.scale("Worker", 1).reconcile();
    assert_eq!(
        w.pod_names(),
        ["scheduler-0", "worker-0", "(worker-1)", "(worker-2)"]
    );
    assert_eq!(w.service_names(), ["scheduler-0", "worker-0"]);
    w.finish_deletions().reconcile();
    assert_eq!(
        (w.state(), w.counts("Worker")),
        (vec!["Created".into(), "Running".to_owned()], (1, 0, 0))
    );
    assert!(w.created.is_empty(), "no hole is filled");
}

#[test]
fn a_hole_below_a_surplus_pod_is_not_filled() {
    for scope in ["Job", "Replica"] {
        let mut w = PlanHarness::train("Scheduler=1 Worker=4", &format!("restartScope: {scope}")).started();
        w.created.clear();
        w.scale("Worker", 1).reconcile();
        w.pod("worker-1").vanishes();
        w.pod("worker-2").vanishes();
        w.reconcile();
        assert_eq!(
            w.pod_names(),
            ["scheduler-0", "worker-0", "(worker-3)"],
            "{scope}"
        );
        assert!(w.created.is_empty(), "{scope}: {:?}", w.created);
        assert_eq!(w.status().restart_count, 0, "{scope}");
    }
}

#[test]
fn workers_scaled_down_and_up_again_before_they_were_gone_are_no_failures() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=3", "backoffLimit: 0").started();
    w.scale("Worker", 2).reconcile();
    w.scale("Worker", 3).reconcile();
    assert_eq!(
        w.pod_names(),
        ["scheduler-0", "worker-0", "worker-1", "(worker-2)"]
    );
    w.finish_deletions().reconcile();
    w.all_running();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], 0)
    );
    assert_eq!(w.counts("Worker"), (3, 0, 0));
}

#[test]
fn a_surplus_pod_that_failed_says_nothing() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.scale("Worker", 1);
    w.pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), ["Created", "Running"]);
}

#[test]
fn scaling_down_to_those_that_are_done_is_success() {
    let mut w = PlanHarness::train("Worker=3", "").started();
    w.pod("worker-0").succeeds();
    w.reconcile();
    w.scale("Worker", 1).reconcile();
    assert_eq!(w.state(), ["Created", "Succeeded"]);
}

#[test]
fn a_role_may_be_added_and_taken_away() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    w.edit(|job| {
        let worker = job.spec.replica_specs["Worker"].clone();
        job.spec.replica_specs.insert("Server".into(), worker);
    });
    assert_eq!(w.reconcile().pod_names(), ["scheduler-0", "server-0", "worker-0"]);
    w.all_running();
    w.edit(|job| {
        job.spec.replica_specs.remove("Server");
    });
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(
        (w.pod_names(), w.service_names()),
        (
            vec!["scheduler-0".into(), "worker-0".to_owned()],
            vec!["scheduler-0".into(), "worker-0".to_owned()]
        )
    );
    assert!(!w.status().replica_statuses.contains_key("Server"));
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], 0)
    );
}

#[test]
fn a_role_that_comes_back_has_lost_nobody() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=1", "").started();
    let server = w.job.spec.replica_specs["Server"].clone();
    w.edit(|job| {
        job.spec.replica_specs.remove("Server");
    });
    w.reconcile().finish_deletions().reconcile();
    w.edit(|job| {
        job.spec.replica_specs.insert("Server".into(), server);
    });
    w.reconcile();
    w.all_running();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], 0)
    );
}

#[test]
fn names_tell_replicas_and_labels_do_not_but_are_restored() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    let labels = w.pod("worker-0").object().metadata.labels.as_mut().unwrap();
    let before = labels.clone();
    labels.insert("training.kubeflow.org/replica-index".into(), "100000".into());
    w.created.clear();
    w.reconcile();
    assert!(w.created.is_empty());
    assert_eq!(
        (w.state(), w.counts("Worker")),
        (vec!["Created".into(), "Running".to_owned()], (1, 0, 0))
    );
    assert_eq!(w.pod("worker-0").object().metadata.labels, Some(before));
}

#[test]
fn a_role_of_none_comes_and_goes_no_more() {
    let w = PlanHarness::train("Scheduler=1 Server=0 Worker=1", "").started();
    assert_eq!(w.pod_names(), ["scheduler-0", "worker-0"]);
    assert_eq!(w.created.len(), 2);
    assert!(w.status().replica_statuses.contains_key("Server"));
}
