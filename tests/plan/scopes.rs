//! The scope of a restart, and its time.

use training_job::api::RestartScope;

use crate::harness::{PlanHarness, Stories};

#[test]
fn a_distributed_training_comes_back_together_once_the_last_old_pod_is_gone() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=2:ExitCode", "").started();
    w.created.clear();
    w.pod("worker-1").exits(137).reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(w.pod_names(), ["(scheduler-0)", "(server-0)", "(worker-0)"]);
    assert!(
        w.created.is_empty(),
        "a pod that came now would join a cluster that is about to die"
    );
    for name in ["scheduler-0", "server-0"] {
        w.pod(name).vanishes().reconcile();
        assert!(w.created.is_empty());
    }
    w.finish_deletions().reconcile();
    assert_eq!(
        w.created,
        ["job-scheduler-0", "job-server-0", "job-worker-0", "job-worker-1"]
    );
    assert!(
        w.attempts().values().all(|&attempt| attempt == 1),
        "{:?}",
        w.attempts()
    );
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn replicas_with_policy_never_restart_with_the_others() {
    let mut w = PlanHarness::train("Scheduler=1:Never Server=1:Never Worker=1:OnFailure", "").started();
    w.pod("worker-0").exits(1).reconcile();
    // The other processes notice, and exit because of it. Their failures are secondary.
    w.pod("scheduler-0").exits(1).pod("server-0").exits(255);
    assert_eq!(w.all_replaced().state(), "Created Running");
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn completed_replicas_run_again_when_the_whole_job_restarts() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "").started();
    w.pod("worker-0").succeeds().reconcile().pod("worker-1").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.attempts()["worker-0"], 1);
    assert_eq!(w.counts("Worker"), (0, 0, 0));
}

#[test]
fn completed_replicas_rest_when_a_single_one_restarts() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "restartScope: Replica").started();
    w.pod("worker-0").succeeds().reconcile();
    w.pod("worker-1").exits(1).reconcile();
    let attempts = w.attempts();
    assert_eq!(attempts["worker-0"], 0);
    assert_eq!(attempts["worker-1"], 1);
    assert_eq!(attempts["scheduler-0"], 0);
    assert_eq!(w.counts("Worker"), (0, 1, 0));
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn a_role_restarts_as_one() {
    let mut w = PlanHarness::train(
        "Scheduler=1 Server=2:OnFailure Worker=2:OnFailure",
        "restartScope: Role",
    )
    .started();
    w.created.clear();
    w.pod("worker-0").exits(1).reconcile();
    assert_eq!(
        w.pod_names(),
        ["scheduler-0", "server-0", "server-1", "(worker-1)"]
    );
    assert!(w.created.is_empty());
    w.finish_deletions().reconcile();
    assert_eq!(w.created, ["job-worker-0", "job-worker-1"]);
    w.all_running();
    // Failures in two roles at once are two restarts.
    w.pod("worker-0").exits(1).pod("server-0").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.status().restart_count, 3);
    assert_eq!(w.attempts()["worker-1"], 2);
    assert_eq!(w.attempts()["server-1"], 1);
    assert_eq!(w.attempts()["scheduler-0"], 0);
    // Failures of two replicas of one role are one restart.
    w.all_replaced().pod("worker-0").exits(1);
    assert_eq!(w.pod("worker-1").exits(1).reconcile().status().restart_count, 4);
    assert_eq!(w.status().recovery.roles["Worker"], 3);
}

#[test]
fn the_setting_of_the_operator_applies_if_the_job_sets_no_scope() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:OnFailure", "")
        .with_scope(RestartScope::Replica)
        .started();
    w.pod("worker-0").exits(1).reconcile();
    assert_eq!(w.attempts()["scheduler-0"], 0);

    let mut w = PlanHarness::train("Scheduler=1 Worker=1:OnFailure", "restartScope: Job")
        .with_scope(RestartScope::Replica)
        .started();
    w.pod("worker-0").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.attempts()["scheduler-0"], 1);
}

#[test]
fn a_container_restarted_in_place_restarts_the_whole_job() {
    for policy in ["OnFailure", "Always"] {
        let mut w = PlanHarness::train(&format!("Scheduler=1 Worker=2:{policy}"), "").started();
        w.pod("worker-0").restarts_in_place(137).reconcile();
        assert_eq!(
            w.pod_names(),
            ["(scheduler-0)", "(worker-0)", "(worker-1)"],
            "{policy}"
        );
        assert_eq!(w.all_replaced().state(), "Created Running");
        assert_eq!(w.status().restart_count, 1);
    }
}

#[test]
fn a_container_that_restarts_after_a_success_is_not_a_failure() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:Always", "").started();
    w.pod("worker-0").restarts_in_place(0);
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn an_init_container_that_is_tried_again_restarts_no_replica_and_is_counted() {
    // The init container may wait for the scheduler. The replica has not joined the others, so none of them hangs.
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:OnFailure", "");
    w.reconcile().pod("worker-0").init_restarts("wait", 3);
    assert_eq!(w.reconcile().status().restart_count, 3);
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(w.pod_names().len(), 2);
}

#[test]
fn pods_of_a_role_that_is_gone_must_be_gone_too_before_the_others_come_back() {
    // An old worker would find the new scheduler by its name, and join it.
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "").started();
    w.created.clear();
    w.pod("worker-0").exits(1).scale("Worker", 1).reconcile();
    w.pod("scheduler-0").vanishes().reconcile();
    assert_eq!(w.pod_names(), ["(worker-1)"]);
    assert_eq!(w.created.len(), 0);
    w.finish_deletions().reconcile();
    assert_eq!(w.created, ["job-scheduler-0", "job-worker-0"]);
}
