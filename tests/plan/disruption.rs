//! Pods that are removed by the cluster, deleted, lost or never started (#3, #4, #18, #37).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::harness::{PlanHarness, Stories, notices};

#[test]
fn an_evicted_pod_is_replaced_unless_its_policy_is_never() {
    for (policy, then) in [
        ("OnFailure", "Restarting"),
        ("Always", "Restarting"),
        ("ExitCode", "Restarting"),
        ("Never", "Failed"),
    ] {
        let mut w = PlanHarness::train(&format!("Scheduler=1 Worker=2:{policy}"), "").started();
        w.pod("worker-0").evicted().reconcile();
        assert_eq!(w.state(), format!("Created {then}"), "{policy}");
        let failure = w.status().failure.unwrap();
        assert_eq!((failure.reason.as_str(), failure.exit_code), ("Evicted", None));
        assert_eq!(failure.message, "The node was low on resource: memory.");
        assert_eq!(w.status().restart_count, i32::from(then == "Restarting"));
    }
}

#[test]
fn a_drained_pod_is_judged_by_the_drain_and_not_by_its_exit_code() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "backoffLimit: 3").started();
    w.pod("worker-0").disrupted();
    assert_eq!(w.reconcile().state(), "Created Restarting");
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
        let mut w = PlanHarness::train("Worker=1:ExitCode", "backoffLimit: 3").started();
        w.pod("worker-0").ends_as_it_is_taken(reason, 1);
        assert_eq!(w.reconcile().state(), format!("Created {then}"), "{reason}");
        assert_eq!(w.status().failure.unwrap().reason, reason);
    }
}

#[test]
fn a_terminating_pod_is_neither_active_nor_failed() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "restartScope: Replica").started();
    for code in [None, Some(143)] {
        match code {
            None => w.pod("worker-0").deleted_by_user(),
            Some(code) => w.pod("worker-0").exits(code),
        }
        .reconcile();
        assert_eq!(w.state(), "Created Running");
        assert_eq!(w.counts("Worker"), (1, 0, 0));
    }
}

#[test]
fn a_deleted_pod_takes_the_rest_of_its_group_along_at_once() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-0").deleted_by_user().reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(
        w.pod_names(),
        ["(scheduler-0)", "(worker-0)", "(worker-1)"],
        "their grace periods pass at the same time"
    );
    w.finish_deletions().reconcile();
    assert_eq!((w.pod_names().len(), w.status().restart_count), (3, 1));
}

#[test]
fn nothing_has_succeeded_that_was_taken_away() {
    // The program saves a checkpoint on SIGTERM and exits with 0, or with another code.
    for (roles, fields) in [
        ("Scheduler=1 Worker=2", ""),
        ("Worker=1", ""),
        ("Worker=3", ""),
        ("Worker=3", "restartScope: Replica"),
    ] {
        for code in [0, 143, 137, 1] {
            for disrupted in [false, true] {
                let mut w = PlanHarness::train(roles, fields).started();
                for name in w.pod_names() {
                    w.pod(&name).deleted_by_user();
                }
                w.after(2);
                for name in w.pod_names() {
                    let name = name.trim_matches(['(', ')']);
                    match code {
                        0 => w.pod(name).succeeds(),
                        code => w.pod(name).exits(code),
                    };
                    if disrupted {
                        w.pod(name).becomes_disruption_target("EvictionByEvictionAPI");
                    }
                }
                w.reconcile().finish_deletions().reconcile();
                let case = format!("{roles} {fields} {code} {disrupted}");
                assert!(!w.status().is_finished(), "{case}: {:?}", w.state());
                assert!(w.status().recovery.completed.is_empty(), "{case}");
                assert_eq!(w.all_replaced().state(), "Created Running", "{case}");
            }
        }
    }
}

#[test]
fn a_pod_that_the_cluster_ends_in_place_is_replaced_whatever_its_code_and_policy() {
    // The node shuts down gracefully, or a scheduler preempts the pod and deletes it later.
    for policy in ["Never", "OnFailure", "ExitCode"] {
        for code in [0, 1, 143] {
            let mut w = PlanHarness::train(&format!("Scheduler=1 Worker=2:{policy}"), "").started();
            w.after(5)
                .pod("worker-0")
                .becomes_disruption_target("TerminationByKubelet");
            let pod = w.after(1).pod("worker-0");
            match code {
                0 => pod.succeeds_as_it_is_taken(),
                code => pod.exits_as_it_is_taken(code),
            };
            assert_eq!(w.reconcile().state(), "Created Restarting", "{policy} {code}");
            let failure = w.status().failure.unwrap();
            assert_eq!(failure.reason, "TerminationByKubelet");
            assert_eq!(
                failure.message,
                "pod job-worker-0 was disrupted: it is taken away"
            );
            assert_eq!(failure.node.as_deref(), Some("node-1"));
            assert_eq!(
                failure.time.unwrap().0,
                w.now - jiff::SignedDuration::from_secs(1)
            );
        }
    }
}

#[test]
fn a_success_before_a_disruption_stays_a_success() {
    for disrupted in [false, true] {
        let mut w = PlanHarness::train("Worker=2", "").started();
        w.pod("worker-0").succeeds();
        // The operator has not observed the end yet. The clocks of nodes may be behind by five minutes.
        w.after(301);
        if disrupted {
            w.pod("worker-0")
                .becomes_disruption_target("DeletionByTaintManager");
        } else {
            w.pod("worker-0").object().metadata.deletion_timestamp = Some(Time(w.now));
        }
        w.reconcile();
        assert_eq!(w.status().recovery.completed["Worker"], "0", "{disrupted}");
        w.pod("worker-0").vanishes().pod("worker-1").succeeds();
        assert_eq!(w.reconcile().state(), "Created Succeeded", "{disrupted}");
    }
}

#[test]
fn a_pod_that_does_not_go_is_reported_and_deleted_by_force_if_the_operator_may() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-1").object().spec.as_mut().unwrap().node_name = Some("node-1".to_owned());
    w.pod("worker-1").deleted_by_user();
    let since = w.now;
    w.reconcile().pod("scheduler-0").vanishes();
    w.pod("worker-0").vanishes();
    assert!(notices(&w).is_empty(), "its grace period is not over");
    let requeue = w.plan().requeue.expect("it is looked at again");
    assert_eq!(requeue.at, since + jiff::SignedDuration::from_secs(60));
    w.after(60).reconcile();
    assert_eq!(
        notices(&w),
        [format!(
            "PodsStuckTerminating: pod job-worker-1 on node node-1 has been terminating since {since}, longer than its \
             grace period; if the node is down, add the taint node.kubernetes.io/out-of-service to it, or delete the \
             pod with --force --grace-period=0"
        )]
    );
    assert_eq!(w.pod_names(), ["(worker-1)"], "its name is not free");
    let mut forced = w.clone().with_force_delete_after(90);
    assert!(forced.plan().delete.is_empty());
    forced.after(60).reconcile();
    assert_eq!(forced.pod_names(), ["scheduler-0", "worker-0", "worker-1"]);
    // The same notice appears after the end, and for a suspended job.
    w.suspend(true).reconcile();
    assert!(notices(&w)[0].starts_with("PodsStuckTerminating"));
}

/// The pods have a grace period of 30 s.
#[test]
fn a_pod_is_deleted_by_force_after_its_grace_period_and_the_delay_of_the_setting() {
    for (after, event_comes_first) in [(5, false), (90, true)] {
        let w = PlanHarness::train("Worker=1", "restartScope: Replica").started();
        let mut w = w.with_force_delete_after(after);
        w.pod("worker-0").deleted_by_user();
        let due = w.now + jiff::SignedDuration::from_secs(30);
        w.reconcile();
        let at = due + jiff::SignedDuration::from_secs(i64::try_from(after).unwrap());
        let mut reports = 0;
        while w.now < at {
            let plan = w.plan();
            assert!(plan.delete.is_empty(), "{after} s: {} of {at}", w.now);
            reports += plan.notices.len();
            w.now = plan.requeue.unwrap().at;
        }
        assert_eq!(w.now, at);
        assert!(w.plan().delete[0].force);
        assert_eq!(reports > 0, event_comes_first, "{after} s");
    }
}

#[test]
fn a_pod_that_a_finalizer_holds_is_reported_with_it_and_never_deleted_by_force() {
    let held = |finalizers: &[&str], lost: bool| {
        let w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
        let mut w = w.with_force_delete_after(1);
        let finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
        w.pod("worker-1").object().metadata.finalizers = Some(finalizers);
        if lost {
            w.pod("worker-1")
                .becomes_disruption_target("DeletionByTaintManager");
        }
        w.pod("worker-1").deleted_by_user();
        let since = w.now;
        w.reconcile().after(100).reconcile();
        let plan = w.plan();
        assert!(plan.delete.iter().all(|deletion| deletion.name != "job-worker-1"));
        let mut notices = plan.notices.into_iter();
        let mut stuck = notices.by_ref().filter(|n| n.reason == "PodsStuckTerminating");
        (
            stuck.next().unwrap().message,
            format!("pod job-worker-1 has been terminating since {since}, because it is held by its "),
        )
    };
    let (one, start) = held(&["example.com/hold"], false);
    let remedy = "example.com/hold: whoever set it has to remove it";
    assert_eq!(one, format!("{start}finalizer {remedy}"));
    let (two, start) = held(&["a", "b"], false);
    assert_eq!(
        two,
        format!("{start}finalizers a, b: whoever set them has to remove them")
    );
    let (lost, start) = held(&["example.com/hold"], true);
    assert_eq!(
        lost,
        format!(
            "{start}finalizer {remedy}; node node-1 does not respond either, and if it is down, add the taint \
             node.kubernetes.io/out-of-service to it"
        )
    );
}

#[test]
fn a_job_without_running_pods_is_not_running() {
    let mut w = PlanHarness::train("Worker=2", "restartScope: Replica").started();
    w.pod("worker-0").deleted_by_user();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-1")
        .taken("Unknown", "NodeLost", "Node node-1 is unresponsive");
    assert_eq!(w.reconcile().state(), "Created");
    assert_eq!(w.conditions()[1], "Running=False(ToyJobNotRunning)");
    assert_eq!(w.plan().notices[0].reason, "PodStateUnknown");
    assert_eq!(w.all_replaced().state(), "Created Running");
}

#[test]
fn a_job_runs_while_a_replica_runs_that_does_not_decide() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "restartScope: Replica").started();
    w.pod("scheduler-0")
        .taken("Unknown", "NodeLost", "Node node-1 is unresponsive");
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-0")
        .taken("Unknown", "NodeLost", "Node node-1 is unresponsive");
    assert_eq!(w.reconcile().state(), "Created");
}

#[test]
fn a_pod_that_has_a_node_and_does_not_start_is_reported_after_a_while() {
    let mut w = PlanHarness::train("Worker=2", "");
    w.reconcile();
    let reasons = |w: &PlanHarness| -> Vec<String> {
        let notices = w.plan().notices.into_iter();
        notices.map(|notice| notice.reason).collect()
    };
    for worker in ["worker-0", "worker-1"] {
        w.pod(worker).is_scheduled();
    }
    assert!(reasons(&w).is_empty());
    assert!(w.plan().requeue.is_some());
    w.after(300);
    assert_eq!(reasons(&w), ["PodNotStarted"]);
    assert!(
        w.plan().notices[0].message.contains("job-worker-0")
            && w.plan().notices[0]
                .message
                .ends_with("; another pod has the same problem")
    );
    w.all_running();
    assert!(reasons(&w).is_empty());
}

#[test]
fn a_deleted_replica_of_a_distributed_training_restarts_the_job_even_under_never() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-0").deleted_by_user();
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.state(), "Created Restarting");
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.reason.as_str(), "PodDeleted");
    assert_eq!(failure.message.as_str(), "pod job-worker-0 was deleted");
    assert_eq!(w.all_replaced().state(), "Created Running");
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn a_deleted_replica_that_stands_alone_is_made_again() {
    for roles in ["Worker=1", "Worker=1:OnFailure"] {
        let mut w = PlanHarness::train(roles, "").started();
        w.pod("worker-0").deleted_by_user().reconcile();
        assert_eq!(
            w.pod_names(),
            ["(worker-0)"],
            "not before its predecessor is gone"
        );
        assert_eq!(w.all_replaced().state(), "Created Running");
        assert_eq!(w.pod_names(), ["worker-0"]);
    }
}

#[test]
fn a_loss_is_noticed_though_the_operator_was_away() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-1").vanishes().restart_operator().reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn all_pods_lost_at_once_are_one_restart() {
    let mut w = PlanHarness::train("Scheduler=1 Server=2 Worker=2", "backoffLimit: 1").started();
    for name in w.pod_names() {
        w.pod(&name).vanishes();
    }
    w.reconcile();
    assert_eq!((w.status().restart_count, w.pod_names().len()), (1, 5));
}

#[test]
fn a_silent_node_is_waited_for() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:OnFailure", "").started();
    w.pod("worker-0").taken(
        "Unknown",
        "NodeLost",
        "Node node-1 which was running pod is unresponsive",
    );
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.status().restart_count, 0);
    w.pod("worker-0").vanishes().reconcile();
    assert_eq!(w.state(), "Created Restarting");
}

#[test]
fn a_pod_that_never_starts_does_not_delay_others_forever() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "activeDeadlineSeconds: 60");
    w.reconcile().pod("scheduler-0").running();
    w.pod("worker-0")
        .waits("ImagePullBackOff", "Back-off pulling image \"example.com/toy:1\"");
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.counts("Worker"), (0, 0, 0));
    w.after(60).reconcile().finish_deletions().reconcile();
    assert_eq!(w.state(), "Created Failed");
    assert_eq!(w.pod_names().len(), 0);
    assert_eq!(
        w.status().failure.unwrap().message,
        "the job did not end within activeDeadlineSeconds (60 s); pod job-worker-0 never started: \
         ImagePullBackOff: Back-off pulling image \"example.com/toy:1\""
    );
}

#[test]
fn a_deleted_service_is_made_again() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    w.services.remove("job-worker-0");
    assert_eq!(w.reconcile().service_names(), ["scheduler-0", "worker-0"]);
}
