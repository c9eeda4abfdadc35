//! Suspend and resume (#4, #15, #17, #25, #26).

use crate::harness::{PlanHarness, Stories};

#[test]
fn a_job_may_be_born_suspended() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "suspend: true, activeDeadlineSeconds: 60");
    w.reconcile();
    assert_eq!(
        w.conditions(),
        ["Created=True(ToyJobCreated)", "Suspended=True(ToyJobSuspended)"]
    );
    assert_eq!(w.pod_names().len(), 0);
    assert_eq!(w.service_names().len(), 0);
    assert_eq!(w.status().start_time, None);
    assert!(w.status().replica_statuses.is_empty(), "nothing is counted yet");
    assert_eq!(w.plan().requeue, None, "its clock stands");
    w.after(1_000).suspend(false).reconcile();
    assert_eq!(
        w.conditions(),
        ["Suspended=False(ToyJobResumed)", "Created=True(ToyJobCreated)"]
    );
    assert_eq!(w.status().start_time.unwrap().0, w.now);
    assert_eq!(w.attempts()["worker-0"], 0, "it is the first attempt");
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(
        w.event_reasons(),
        ["ToyJobSuspended", "ToyJobResumed"],
        "on transitions only"
    );
}

#[test]
fn a_running_job_is_stopped_and_begins_anew() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "activeDeadlineSeconds: 60").started();
    let start = w.status().start_time;
    w.after(50).suspend(true).reconcile();
    assert_eq!(
        w.conditions(),
        [
            "Created=True(ToyJobCreated)",
            "Running=False(ToyJobSuspended)",
            "Suspended=True(ToyJobSuspended)"
        ]
    );
    let still_there = (1, 0, 0);
    assert_eq!(
        (w.counts("Worker"), w.status().start_time),
        (still_there, start),
        "no other job may have its room yet"
    );
    w.after(50).finish_deletions().reconcile();
    assert_eq!(w.counts("Worker"), (0, 0, 0));
    assert_eq!((w.pod_names().len(), w.service_names().len()), (0, 0));
    assert_eq!(w.state(), "Created Suspended", "the deadline does not run");
    w.after(500).suspend(false).reconcile();
    assert_eq!(w.status().start_time.unwrap().0, w.now);
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(w.after(59).reconcile().state(), "Created Running");
    w.after(1).reconcile();
    assert_eq!(
        w.state(),
        "Created Failed",
        "the deadline counts from the resumption"
    );
}

/// Clients show the last condition, and so does `kubectl get` in the column State.
#[test]
fn the_last_condition_is_the_state_of_the_job() {
    let last = |w: &PlanHarness| w.status().conditions.last().unwrap().type_.clone();
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    assert_eq!(last(&w), "Running");
    w.suspend(true).reconcile().finish_deletions().reconcile();
    assert_eq!(last(&w), "Suspended");
    w.suspend(false).reconcile();
    assert_eq!(last(&w), "Created");
    w.all_running();
    assert_eq!(last(&w), "Running");
    w.pod("scheduler-0").succeeds().reconcile();
    assert_eq!(last(&w), "Succeeded");
}

#[test]
fn a_restarting_job_that_is_suspended_is_not_restarting() {
    let mut w = PlanHarness::train("Scheduler=1:ExitCode Worker=1", "").started();
    w.pod("scheduler-0").exits(137).reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(w.suspend(true).reconcile().state(), "Created Suspended");
    w.finish_deletions().reconcile().suspend(false).reconcile();
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn a_job_resumed_early_waits_for_its_old_pods_without_a_failure() {
    for scope in ["Job", "Role", "Replica"] {
        let policy = format!("backoffLimit: 0, restartScope: {scope}");
        let mut w = PlanHarness::train("Scheduler=1 Worker=2", &policy).started();
        w.created.clear();
        w.suspend(true).reconcile();
        assert_eq!(w.pod_names(), ["(scheduler-0)", "(worker-0)", "(worker-1)"]);
        w.suspend(false).reconcile();
        assert!(w.created.is_empty());
        assert_eq!(w.all_replaced().state(), "Created Running", "{scope}");
        assert_eq!(w.status().restart_count, 0, "{scope}");
        assert_eq!(w.status().failure, None, "{scope}");
    }
}

#[test]
fn a_suspension_undone_before_a_pod_was_deleted_begins_anew_all_the_same() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "backoffLimit: 0").started();
    w.suspend(true);
    let plan = w.plan();
    w.store(&plan);
    w.suspend(false).reconcile();
    assert_eq!(w.pod_names(), ["(scheduler-0)", "(worker-0)"]);
    assert_eq!(w.all_replaced().state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn a_suspension_undone_before_it_was_stored_is_not_a_failure() {
    // The same as if the operator had died between its deletions and its status write.
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "backoffLimit: 0").started();
    w.suspend(true);
    for step in training_job_testbed::steps(&w.plan()) {
        w.carry_out(&step);
    }
    w.restart_operator()
        .suspend(false)
        .reconcile()
        .finish_deletions()
        .reconcile();
    assert_eq!(w.all_running().state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn nothing_that_was_done_before_a_suspension_counts_after_it() {
    let mut w = PlanHarness::train("Worker=2", "").started();
    w.pod("worker-0").succeeds().pod("worker-0").vanishes();
    w.reconcile();
    w.suspend(true).reconcile().finish_deletions().reconcile();
    assert_eq!(w.suspend(false).reconcile().pod_names(), ["worker-0", "worker-1"]);
}

#[test]
fn a_finished_job_cannot_be_suspended() {
    let mut w = PlanHarness::train("Worker=1", "").started();
    w.pod("worker-0").succeeds().reconcile().suspend(true).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    assert_eq!(w.pod_names(), ["worker-0"]);
}

/// Kueue reads roles with their exact spelling. Pods of other roles would run outside of the quota.
#[test]
fn a_job_in_a_queue_spells_its_roles_as_kueue_does() {
    let mut w = PlanHarness::train("Scheduler=1 worker=2", "");
    assert!(!w.plan().refused, "in no queue it may be written as it likes");
    w.edit(|job| {
        let queue = ("kueue.x-k8s.io/queue-name".to_owned(), "blue".to_owned());
        job.metadata.labels = Some([queue].into());
    });
    let plan = w.plan();
    assert!(plan.refused && plan.create_pods.is_empty());
    w.reconcile();
    let told = w.events.last().unwrap().message.clone();
    let problem = "spec.replicaSpecs.worker: must be spelled Worker in a queued job, because Kueue would not count its pods \
                   otherwise; rename it, or remove label kueue.x-k8s.io/queue-name";
    assert!(told.contains(problem), "{told}");
}

/// A queue that suspends a job takes its capacity back at once if no replica is active. The queue reads only the
/// status, and may be faster than this operator.
#[test]
fn a_job_in_a_queue_is_active_from_before_its_pods_are_made_until_they_are_gone() {
    let in_queue = |w: &mut PlanHarness| {
        let labels = w.job.metadata.labels.get_or_insert_default();
        labels.insert("kueue.x-k8s.io/queue-name".to_owned(), "blue".to_owned());
    };
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "suspend: true");
    in_queue(&mut w);
    w.reconcile();
    assert!(w.status().replica_statuses.is_empty());
    w.suspend(false).reconcile_once();
    assert_eq!((w.counts("Worker"), w.pod_names().len()), ((2, 0, 0), 0));
    w.reconcile();
    assert_eq!((w.counts("Worker"), w.pod_names().len()), ((2, 0, 0), 3));
    assert_eq!(w.status().recovery.job, 0, "nothing was restarted");
    assert_eq!(w.all_running().counts("Scheduler"), (1, 0, 0));
    w.pod("worker-0").succeeds().reconcile();
    assert_eq!(w.counts("Worker"), (1, 1, 0));
    w.pod("worker-1").exits(137).reconcile().after(5).reconcile();
    assert_eq!(w.counts("Worker"), (2, 0, 0), "all of it is made again");
    w.suspend(true).reconcile().finish_deletions().reconcile();
    assert_eq!(w.counts("Worker"), (0, 0, 0));

    // The job was admitted while no operator ran.
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "");
    in_queue(&mut w);
    let plan = w.plan();
    assert!(plan.status.is_some_and(|status| status.urgent));
    assert_eq!((plan.create_pods.len(), plan.create_services.len()), (0, 0));
    assert_eq!(w.reconcile().pod_names().len(), 3);

    // The queue treats the job as finished when it has ended.
    w.all_running().pod("scheduler-0").succeeds();
    assert_eq!(w.reconcile().after(2).reconcile().counts("Worker"), (0, 2, 0));
}
