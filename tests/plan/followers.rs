//! Secondary failures: processes that train together end when one of them is gone. Their exit codes do not decide the
//! job.

use training_job::api::RestartScope;

use crate::harness::{PlanHarness, Stories};

/// Workers that restart together. A non-retryable exit code of one of them fails the job.
const WORKERS: &str = "Worker=3:ExitCode";

fn cause(w: &PlanHarness) -> (String, Option<i32>) {
    let failure = w.status().failure.unwrap();
    (failure.pod.unwrap(), failure.exit_code)
}

#[test]
fn a_survivor_that_ends_within_seconds_is_not_judged_by_its_own_code() {
    for seconds in [0, 1, 10] {
        let mut w = PlanHarness::train(WORKERS, "").started();
        w.pod("worker-2").exits(137);
        w.after(seconds).pod("worker-0").exits(1).reconcile();
        assert_eq!(w.state(), "Created Restarting", "{seconds}");
        assert_eq!(cause(&w), ("job-worker-2".to_owned(), Some(137)));
        assert_eq!(w.status().restart_count, 1);
        w.finish_deletions().reconcile();
        assert_eq!(w.all_running().state(), "Created Running");
    }
}

#[test]
fn one_that_ends_much_later_or_earlier_is() {
    for (first, code, later, other) in [("worker-2", 137, 11, 1), ("worker-0", 1, 1, 137)] {
        let mut w = PlanHarness::train(WORKERS, "").started();
        w.pod(first).exits(code);
        let second = if first == "worker-2" {
            "worker-0"
        } else {
            "worker-2"
        };
        w.after(later).pod(second).exits(other).reconcile();
        assert_eq!(w.state(), "Created Failed", "{first}");
    }
}

#[test]
fn a_survivor_of_a_lost_pod_is_one_though_the_clock_of_its_node_is_behind() {
    for (behind, state) in [(0, "Restarting"), (300, "Restarting"), (301, "Failed")] {
        let mut w = PlanHarness::train(WORKERS, "").started();
        w.after(400).pod("worker-2").deleted_by_user();
        w.after(-behind).pod("worker-0").exits(1);
        w.after(behind + 1).reconcile();
        assert_eq!(w.state(), format!("Created {state}"), "{behind}");
    }
}

#[test]
fn the_first_reported_failure_waits_for_the_others() {
    let mut w = PlanHarness::train(WORKERS, "").started();
    w.after(1).pod("worker-0").exits(1);
    w.observe_end("worker-0").reconcile();
    assert_eq!(w.state(), "Created Running", "it may follow from another failure");
    let requeue = w.plan().requeue.expect("the time is looked at again");
    assert_eq!(requeue.at.duration_since(w.now).as_secs(), 3);
    // The kubelet of another node now reports that worker 2 was killed at the same time.
    w.pod("worker-2").exits(137).reconcile();
    assert_eq!(w.state(), "Created Restarting");
    assert_eq!(cause(&w).1, Some(137));

    let mut w = PlanHarness::train(WORKERS, "").started();
    w.after(1).pod("worker-0").exits(1);
    w.observe_end("worker-0").reconcile().after(2).reconcile();
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.after(1).reconcile().state(), "Created Failed", "none did");
    assert_eq!(cause(&w), ("job-worker-0".to_owned(), Some(1)));
}

#[test]
fn a_failure_without_other_running_replicas_is_judged_at_once() {
    for roles in ["Worker=1:ExitCode", "Worker=2:ExitCode"] {
        let mut w = PlanHarness::train(roles, "").started();
        for pod in w.pod_names() {
            let replica = pod.trim_start_matches("job-").to_owned();
            w.pod(&replica).exits(1).observe_end(&replica);
        }
        assert_eq!(w.reconcile().state(), "Created Failed", "{roles}");
    }
}

/// A node is drained. Its pod is being deleted, and the other pods end before it is gone.
#[test]
fn the_deletion_of_a_pod_is_the_cause_of_later_failures() {
    let mut w = PlanHarness::train(WORKERS, "").started();
    w.pod("worker-1").deleted_by_user();
    w.after(1).pod("worker-0").exits(1);
    w.observe_end("worker-0").reconcile();
    assert_eq!(w.state(), "Created Restarting");
    let failure = w.status().failure.unwrap();
    assert_eq!((failure.reason.as_str(), failure.index), ("PodDeleted", Some(1)));

    let mut w = PlanHarness::train(WORKERS, "").started();
    w.pod("worker-1").vanishes();
    w.after(1).pod("worker-0").exits(1).reconcile();
    assert_eq!(w.state(), "Created Restarting", "it is gone already");
}

#[test]
fn replicas_that_restart_alone_are_judged_alone() {
    for (scope, state) in [(RestartScope::Replica, "Failed"), (RestartScope::Role, "Running")] {
        let mut w = PlanHarness::train("Scheduler=1:ExitCode Worker=2:ExitCode", "")
            .with_scope(scope.clone())
            .started();
        w.pod("worker-1").exits(137).after(1).pod("worker-0").exits(1);
        assert_eq!(w.reconcile().state(), format!("Created {state}"), "{scope:?}");
        let mut w = PlanHarness::train("Scheduler=1:ExitCode Worker=2:ExitCode", "")
            .with_scope(scope)
            .started();
        w.pod("worker-1").exits(137).after(1).pod("scheduler-0").exits(1);
        assert_eq!(w.reconcile().state(), "Created Failed", "it is of another role");
    }
}

#[test]
fn without_restarts_no_failure_is_attributed_to_another() {
    let mut w = PlanHarness::train("Worker=3:Never", "").started();
    w.pod("worker-2").exits(137).after(1).pod("worker-0").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn followers_cost_one_restart_with_the_cause() {
    let mut w = PlanHarness::train(WORKERS, "backoffLimit: 1").started();
    w.pod("worker-2").exits(137);
    w.after(1).pod("worker-0").exits(1).pod("worker-1").exits(1);
    assert_eq!(w.reconcile().state(), "Created Restarting");
    assert_eq!(w.status().restart_count, 1);
}
