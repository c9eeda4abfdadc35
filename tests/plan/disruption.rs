//! Pods that are taken away, deleted, lost or never start (#3, #4, #18, #37).

use crate::world::{Stories, World};

#[test]
fn an_evicted_pod_is_replaced_unless_its_policy_is_never() {
    for (policy, then) in [
        ("OnFailure", "Restarting"),
        ("Always", "Restarting"),
        ("ExitCode", "Restarting"),
        ("Never", "Failed"),
    ] {
        let mut w = World::train(&format!("Scheduler=1 Worker=2:{policy}"), "").started();
        w.pod("worker-0").evicted();
        w.reconcile();
        assert_eq!(w.state(), ["Created", then], "{policy}");
        let failure = w.status().failure.unwrap();
        assert_eq!((failure.reason.as_str(), failure.exit_code), ("Evicted", None));
        assert_eq!(failure.message, "The node was low on resource: memory.");
        assert_eq!(w.status().restart_count, i32::from(then == "Restarting"));
    }
}

#[test]
fn a_drained_pod_is_judged_by_the_drain_and_not_by_its_exit_code() {
    let mut w = World::train("Worker=1:ExitCode", "backoffLimit: 3").started();
    w.pod("worker-0").disrupted();
    assert_eq!(w.reconcile().state(), ["Created", "Restarting"]);
}

#[test]
fn a_pod_that_is_taken_away_without_a_condition_is_judged_by_the_reason() {
    let taken = [
        "Evicted",
        "Preempting",
        "Preempted",
        "NodeLost",
        "NodeAffinity",
        "NodeShutdown",
        "Shutdown",
        "Terminated",
    ];
    for (reason, then) in taken
        .map(|r| (r, "Restarting"))
        .into_iter()
        .chain([("Whim", "Failed")])
    {
        let mut w = World::train("Worker=1:ExitCode", "backoffLimit: 3").started();
        w.pod("worker-0").ends_as_it_is_taken(reason, 1);
        assert_eq!(w.reconcile().state(), ["Created", then], "{reason}");
        assert_eq!(w.status().failure.unwrap().reason, reason);
    }
}

#[test]
fn a_terminating_pod_is_neither_active_nor_failed() {
    let mut w = World::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-0").deleted_by_user();
    w.reconcile();
    assert_eq!(
        (w.state(), w.counts("Worker")),
        (vec!["Created".into(), "Running".to_owned()], (1, 0, 0))
    );
    w.pod("worker-0").exits(143);
    w.reconcile();
    assert_eq!(
        (w.state(), w.counts("Worker")),
        (vec!["Created".into(), "Running".to_owned()], (1, 0, 0))
    );
}

#[test]
fn a_deleted_replica_of_a_distributed_training_restarts_the_job_even_under_never() {
    let mut w = World::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-0").deleted_by_user();
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.state(), ["Created", "Restarting"]);
    let failure = w.status().failure.unwrap();
    assert_eq!(
        (failure.reason.as_str(), failure.message.as_str()),
        ("PodDeleted", "pod job-worker-0 was deleted")
    );
    w.finish_deletions().reconcile();
    w.all_running();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], 1)
    );
}

#[test]
fn a_deleted_replica_that_stands_alone_is_made_again() {
    for roles in ["Worker=1", "Worker=1:OnFailure"] {
        let mut w = World::train(roles, "").started();
        w.pod("worker-0").deleted_by_user();
        w.reconcile();
        assert_eq!(
            w.pod_names(),
            ["(worker-0)"],
            "not before its predecessor is gone"
        );
        w.finish_deletions().reconcile();
        w.all_running();
        assert_eq!(
            (w.state(), w.pod_names()),
            (
                vec!["Created".into(), "Running".to_owned()],
                vec!["worker-0".to_owned()]
            )
        );
    }
}

#[test]
fn a_loss_is_noticed_though_the_operator_was_away() {
    let mut w = World::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-1").vanishes();
    w.restart_operator().reconcile();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Restarting".to_owned()], 1)
    );
}

#[test]
fn all_pods_lost_at_once_are_one_restart() {
    let mut w = World::train("Scheduler=1 Server=2 Worker=2", "backoffLimit: 1").started();
    for name in w.pod_names() {
        w.pod(&name).vanishes();
    }
    w.reconcile();
    assert_eq!((w.status().restart_count, w.pod_names().len()), (1, 5));
}

#[test]
fn a_silent_node_is_waited_for() {
    let mut w = World::train("Scheduler=1 Worker=1:OnFailure", "").started();
    w.pod("worker-0").taken(
        "Unknown",
        "NodeLost",
        "Node node-1 which was running pod is unresponsive",
    );
    w.reconcile();
    assert_eq!(
        (w.state(), w.status().restart_count),
        (vec!["Created".into(), "Running".to_owned()], 0)
    );
    w.pod("worker-0").vanishes();
    w.reconcile();
    assert_eq!(w.state(), ["Created", "Restarting"]);
}

#[test]
fn a_pod_that_never_starts_holds_nobody_up_for_ever() {
    let mut w = World::train("Scheduler=1 Worker=1", "activeDeadlineSeconds: 60");
    w.reconcile();
    w.pod("scheduler-0").running();
    w.pod("worker-0")
        .waits("ImagePullBackOff", "Back-off pulling image \"example.com/toy:1\"");
    w.reconcile();
    assert_eq!(
        (w.state(), w.counts("Worker")),
        (vec!["Created".into(), "Running".to_owned()], (0, 0, 0))
    );
    w.after(60).reconcile().finish_deletions().reconcile();
    assert_eq!(
        (w.state(), w.pod_names().len()),
        (vec!["Created".into(), "Failed".to_owned()], 0)
    );
    assert_eq!(
        w.status().failure.unwrap().message,
        "the job did not end within activeDeadlineSeconds (60 s); job-worker-0 never started: \
         ImagePullBackOff: Back-off pulling image \"example.com/toy:1\""
    );
}

#[test]
fn a_deleted_service_is_made_again() {
    let mut w = World::train("Scheduler=1 Worker=1", "").started();
    w.services.remove("job-worker-0");
    w.reconcile();
    assert_eq!(w.service_names(), ["scheduler-0", "worker-0"]);
}
