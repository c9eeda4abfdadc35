//! The times when a job is running and when it has succeeded (#5, #8).

use crate::harness::{PlanHarness, Stories};

#[test]
fn the_scheduler_decides_a_training() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=2", "");
    assert_eq!(w.reconcile().state(), "Created");
    w.pod("worker-0").running().pod("server-0").running();
    assert_eq!(w.reconcile().state(), "Created", "the scheduler does not run yet");
    assert_eq!(w.all_running().state(), "Created Running");
    w.pod("worker-0").succeeds().pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("scheduler-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert!(w.status().completion_time.is_some());
}

#[test]
fn without_a_scheduler_all_workers_decide() {
    let mut w = PlanHarness::train("Server=1 Worker=2", "").started();
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-0").succeeds().pod("server-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Running", "worker 1 runs on");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_single_worker_is_a_job() {
    let mut w = PlanHarness::train("Worker=1", "").started();
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn roles_with_no_replicas_are_absent() {
    let mut w = PlanHarness::train("Scheduler=0 Server=0 Worker=1", "").started();
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.pod_names(), ["worker-0"]);
    w.pod("worker-0").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_final_failure_outweighs_a_success_of_the_same_moment() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    w.pod("scheduler-0").succeeds().pod("worker-0").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn success_outweighs_a_failure_that_could_be_retried() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", "").started();
    w.pod("scheduler-0").succeeds().pod("worker-0").exits(137);
    assert_eq!(w.reconcile().state(), "Created Succeeded");
    assert_eq!(w.status().restart_count, 0);
}

#[test]
fn a_success_whose_pod_was_collected_is_not_lost() {
    let mut w = PlanHarness::train("Worker=2", "").started();
    w.pod("worker-0").succeeds().reconcile();
    w.pod("worker-0").vanishes().restart_operator().reconcile();
    assert_eq!(w.pod_names(), ["worker-1"], "what is done need not be done again");
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_success_on_record_stands_whatever_a_later_pod_does() {
    // An operator that lags behind may create such a pod.
    let mut w = PlanHarness::train("Worker=2", "").started();
    let pod = w.pods["job-worker-0"].clone();
    w.pod("worker-0").succeeds().reconcile();
    for phase in ["Running", "Failed"] {
        w.pods.insert("job-worker-0".to_owned(), pod.clone());
        if phase == "Failed" {
            w.pod("worker-0").exits(1);
        }
        assert_eq!(w.reconcile().counts("Worker"), (1, 1, 0), "{phase}");
        assert_eq!(w.status().restart_count, 0, "{phase}");
    }
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_success_that_was_collected_before_it_could_be_stored_is_not_lost() {
    let mut w = PlanHarness::train("Worker=2", "").started();
    w.pod("worker-0").succeeds().pod("worker-0").vanishes();
    assert_eq!(w.reconcile().pod_names(), ["worker-1"]);
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().state(), "Created Succeeded");
}

#[test]
fn a_success_is_held_for_a_moment_while_others_run() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=2", "").started();
    w.pod("scheduler-0").succeeds();
    w.observe_end("scheduler-0").reconcile();
    assert_eq!(w.state(), "Created Running");
    let wake = w.plan().requeue.unwrap();
    assert_eq!((wake.at - w.now).get_seconds(), 1, "{}", wake.why);
    for name in ["server-0", "worker-0", "worker-1"] {
        assert_eq!(w.state(), "Created Running");
        w.pod(name).succeeds().reconcile();
    }
    assert_eq!(w.state(), "Created Succeeded", "nobody is left to wait for");
}

#[test]
fn after_the_moment_the_decision_stands() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    w.pod("scheduler-0").succeeds();
    w.observe_end("scheduler-0").reconcile().after(1).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    assert_eq!(w.pod_names(), ["scheduler-0", "(worker-0)"]);
}

#[test]
fn a_worker_that_fails_in_the_moment_after_the_schedulers_end_fails_the_job() {
    // A scheduler may succeed although all workers raise an error.
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=2:ExitCode", "").started();
    w.pod("scheduler-0").succeeds();
    w.observe_end("scheduler-0").reconcile();
    assert_eq!(w.pod("worker-1").exits(1).reconcile().state(), "Created Failed");
    let failure = w.status().failure.unwrap();
    assert_eq!(failure.pod.as_deref(), Some("job-worker-1"));
    assert_eq!(failure.exit_code, Some(1));
}

#[test]
fn a_clock_set_back_holds_nothing() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    w.pod("scheduler-0").succeeds();
    w.after(3600).observe_end("scheduler-0").after(-3600).reconcile();
    assert_eq!(w.state(), "Created Succeeded");
}
