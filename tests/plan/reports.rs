//! Conditions and events: their order and text, without duplicates (#8, #15, #17, #26).

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::harness::{Act, PlanHarness, Stories, notices};

fn events(w: &PlanHarness) -> Vec<String> {
    let all = w.events.iter();
    all.map(|e| {
        format!(
            "{} {}: {}",
            if e.warning { "Warning" } else { "Normal" },
            e.reason,
            e.message
        )
    })
    .collect()
}

#[test]
fn a_good_life() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=1", "").started();
    assert_eq!(
        w.conditions(),
        ["Created=True(ToyJobCreated)", "Running=True(ToyJobRunning)"]
    );
    w.after(5).pod("scheduler-0").succeeds().reconcile();
    assert_eq!(
        w.conditions(),
        [
            "Created=True(ToyJobCreated)",
            "Running=False(ToyJobRunning)",
            "Succeeded=True(ToyJobSucceeded)"
        ]
    );
    let messages: Vec<_> = w.status().conditions.iter().map(|c| c.message.clone()).collect();
    assert_eq!(
        messages,
        [
            "ToyJob job is created.",
            "ToyJob job is running.",
            "ToyJob job is successfully completed."
        ]
    );
    w.restart_operator().after(60).reconcile();
    assert_eq!(
        events(&w),
        ["Normal ToyJobSucceeded: ToyJob job is successfully completed."]
    );
}

#[test]
fn a_life_with_a_restart() {
    let mut w = PlanHarness::train("Scheduler=1:ExitCode Worker=1", "").started();
    w.pod("scheduler-0").exits(137).reconcile();
    assert_eq!(
        w.conditions(),
        ["Created=True(ToyJobCreated)", "Restarting=True(ToyJobRestarting)"]
    );
    w.finish_deletions().reconcile();
    // The pod succeeds before it was observed as running.
    w.pod("scheduler-0").succeeds().reconcile();
    assert_eq!(
        w.conditions(),
        [
            "Created=True(ToyJobCreated)",
            "Running=False(ToyJobRunning)",
            "Succeeded=True(ToyJobSucceeded)"
        ],
        "Restarting does not outlive the job, and clients wait for Running"
    );
    assert_eq!(
        events(&w),
        [
            "Warning ToyJobRestarting: job job is restarting because Scheduler replica(s) failed.",
            "Normal ToyJobSucceeded: ToyJob job is successfully completed."
        ]
    );
}

#[test]
fn a_bad_end() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=1", "").started();
    w.pod("server-0").exits(1).reconcile();
    assert_eq!(
        w.conditions(),
        [
            "Created=True(ToyJobCreated)",
            "Running=False(ToyJobRunning)",
            "Failed=True(ToyJobFailed)"
        ]
    );
    assert_eq!(
        events(&w),
        [
            "Warning ToyJobFailed: ToyJob job is failed because 1 Server replica(s) failed. (job-server-0: exit code 1)"
        ]
    );
}

/// Returns the cause in the only event of a job that fails, which follows the message of the condition.
fn cause(roles: &str, fields: &str, fail: Act) -> String {
    let mut w = PlanHarness::train(roles, fields).started();
    w.events.clear();
    fail(&mut w).reconcile();
    let head = format!("Warning ToyJobFailed: {} ", w.message_of("Failed"));
    match &events(&w)[..] {
        [event] => event.strip_prefix(&head).unwrap_or(event).to_owned(),
        events => panic!("{events:?}"),
    }
}

#[test]
fn the_event_of_a_failed_job_is_a_warning_with_the_pod_and_the_cause() {
    let exits: Act = |w| w.pod("worker-1").exits(3);
    let code = "(job-worker-1: exit code 3)";
    let lost = "(job-worker-0: backoffLimit 0 is used up; the last failure: pod job-worker-0 was deleted)";
    let late = "(the job did not end within activeDeadlineSeconds (5 s))";
    let table: [(&str, &str, Act, &str); 6] = [
        ("Worker=2:Never", "", exits, code),
        ("Worker=2:ExitCode", "", exits, code),
        ("Worker=2:OnFailure", "backoffLimit: 0", exits, code),
        (
            "Worker=2:Never",
            "",
            |w| w.pod("worker-0").evicted(),
            "(job-worker-0: Evicted)",
        ),
        (
            "Worker=2:OnFailure",
            "backoffLimit: 0",
            |w| w.pod("worker-0").vanishes(),
            lost,
        ),
        ("Worker=1", "activeDeadlineSeconds: 5", |w| w.after(5), late),
    ];
    for (roles, policy, fail, expected) in table {
        assert_eq!(cause(roles, policy, fail), expected, "{roles} {policy}");
    }
}

#[test]
fn every_restart_has_one_event() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "").started();
    for _ in 0..3 {
        w.pod("worker-0").exits(137).reconcile();
        w.after(1).reconcile().all_running();
    }
    assert_eq!(w.event_reasons(), ["ToyJobRestarting"; 3]);
}

#[test]
fn transition_times_change_with_the_status_of_a_condition() {
    let mut w = PlanHarness::train("Worker=1", "");
    w.reconcile();
    let born = w.now;
    w.after(10).all_running();
    w.after(10).pod("worker-0").succeeds().reconcile();
    let seconds = |t: &Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| {
        t.as_ref().unwrap().0.duration_since(born).as_secs()
    };
    let status = w.status();
    let times: Vec<_> = status
        .conditions
        .iter()
        .map(|c| seconds(&c.last_transition_time))
        .collect();
    assert_eq!(times, [0, 20, 20], "Running ended at 20");
    assert_eq!(seconds(&status.start_time), 0);
    assert_eq!(seconds(&status.completion_time), 20);
}

#[test]
fn times_of_conditions_put_them_in_order_however_fast_all_of_it_was() {
    let time = |seconds: i64| -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start + jiff::SignedDuration::from_secs(seconds)
    };
    // The creation time by the API server's clock, and the observation time by the operator's clock.
    for (created, seen) in [(0, 0), (0, 1), (0, 500), (30, 0)] {
        let mut w = PlanHarness::train("Worker=1", "");
        w.now = time(seen);
        w.edit(|job| job.metadata.creation_timestamp = Some(Time(time(created))));
        w.reconcile().pod("worker-0").succeeds().reconcile_once();
        assert_eq!(w.state(), "Created Running", "clients wait for Running");
        assert_eq!(w.reconcile().state(), "Created Succeeded");
        let times: Vec<_> = w
            .status()
            .conditions
            .iter()
            .map(|c| c.last_transition_time.clone().unwrap().0)
            .collect();
        let running = time(seen.max(created + 1));
        assert_eq!(
            times,
            [
                time(created),
                running,
                running + jiff::SignedDuration::from_secs(1)
            ]
            .map(|t| t.min(times[2])),
            "{created} {seen}"
        );
        assert!(times[0] < times[2] && times[1] <= times[2], "{times:?}");
    }
}

#[test]
fn an_edited_time_changes_no_other_time() {
    let mut w = PlanHarness::train("Worker=1", "").started();
    w.edit(|job| {
        let far = Some(Time("9999-01-01T00:00:00Z".parse().unwrap()));
        job.status.as_mut().unwrap().conditions[0].last_transition_time = far;
    });
    w.after(5).pod("worker-0").succeeds().reconcile();
    let last = w.status().conditions.last().unwrap().last_transition_time.clone();
    assert_eq!(last.unwrap().0, w.now);
}

#[test]
fn mere_counts_are_not_urgent() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").started();
    w.pod("worker-0").succeeds();
    let change = w.plan().status.expect("the counts change");
    assert!(!change.urgent);
    w.pod("scheduler-0").succeeds();
    assert!(w.plan().status.unwrap().urgent, "the end is");
}

#[test]
fn the_status_of_a_partial_start_may_wait() {
    let urgent = |w: &PlanHarness| w.plan().status.expect("there is news").urgent;
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "");
    assert!(!urgent(&w), "that the job is there");
    w.reconcile().pod("scheduler-0").running();
    assert!(!urgent(&w), "that part of it runs");
    w.pod("worker-0").succeeds();
    let mut begun = w.clone();
    begun.pod("worker-1").succeeds();
    assert!(
        urgent(&begun),
        "one runs and two have ended: nobody is still to begin"
    );
    w.pod("worker-1").running();
    assert!(urgent(&w), "all have begun");
}

#[test]
fn other_changes_during_the_start_are_urgent() {
    let urgent = |w: &PlanHarness| w.plan().status.expect("there is news").urgent;
    let w = PlanHarness::train("Worker=1", "suspend: true");
    assert!(urgent(&w), "a job that is born suspended");
    let mut w = PlanHarness::train("Worker=1", "");
    w.reconcile().suspend(true);
    assert!(urgent(&w), "one that is suspended before it runs");
    let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=1", "restartScope: Replica");
    w.reconcile().pod("scheduler-0").running();
    w.pod("scheduler-0").restarts_in_place(1);
    assert!(urgent(&w), "a restart");
}

#[test]
fn a_condition_under_another_reason_keeps_its_time() {
    let mut w = PlanHarness::train("Worker=1", "").started();
    let since = w.status().conditions[1].last_transition_time.clone();
    w.edit(|job| job.status.as_mut().unwrap().conditions[1].reason = "JobRunning".to_owned());
    w.after(10).reconcile();
    let running = w.status().conditions[1].clone();
    assert_eq!(running.reason.as_str(), "ToyJobRunning");
    assert_eq!(running.last_transition_time, since);
    assert_eq!(running.last_update_time.unwrap().0, w.now);
}

#[test]
fn counts_are_by_the_names_of_the_framework() {
    let mut w = PlanHarness::train("scheduler=1 WORKER=2", "").started();
    let names: Vec<_> = w.status().replica_statuses.keys().cloned().collect();
    assert_eq!(names, ["Scheduler", "Worker"]);
    w.pod("worker-1").succeeds();
    assert_eq!(w.reconcile().counts("Worker"), (1, 1, 0));
}

#[test]
fn a_notice_names_the_obstacle_of_waiting_pods() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1 Worker=3", "");
    w.reconcile();
    assert!(notices(&w).is_empty(), "that pods start is no news");
    w.pod("worker-0").waits("ContainerCreating", "");
    assert!(
        notices(&w).is_empty(),
        "the cluster does not say more than a word"
    );
    w.pod("worker-0")
        .waits("ImagePullBackOff", "Back-off pulling image");
    w.pod("worker-1")
        .waits("ImagePullBackOff", "Back-off pulling image");
    w.pod("worker-2").waits("ErrImagePull", "no such host");
    assert_eq!(
        notices(&w),
        [
            "ImagePullBackOff: Error pod job-worker-0 container toy waiting message: Back-off pulling image; \
             another pod has the same problem",
            "ErrImagePull: Error pod job-worker-2 container toy waiting message: no such host",
        ]
    );
    w.pod("server-0")
        .waits("ImagePullBackOff", "Back-off pulling image");
    assert_eq!(
        notices(&w)[0],
        "ImagePullBackOff: Error pod job-server-0 container toy waiting message: Back-off pulling image; \
         2 other pods have the same problem"
    );
    w.all_running().reconcile();
    assert!(notices(&w).is_empty());
}

#[test]
fn an_unschedulable_pod_is_reported_and_a_gated_pod_is_not() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "");
    w.reconcile();
    let gated = "Scheduling is blocked due to non-empty scheduling gates";
    w.pod("worker-0").is_not_scheduled("SchedulingGated", gated);
    assert!(notices(&w).is_empty());
    w.pod("worker-0")
        .is_not_scheduled("Unschedulable", "0/1 nodes are available");
    assert_eq!(
        notices(&w),
        ["Unschedulable: Error pod job-worker-0 condition message: 0/1 nodes are available"]
    );
}

#[test]
fn the_restart_policy_of_a_template_is_reported_until_the_pods_run() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "");
    assert!(notices(&w).is_empty());
    w.edit_pods(|spec| spec.restart_policy = Some("Always".to_owned()));
    w.reconcile();
    assert_eq!(
        notices(&w),
        ["SetPodTemplateRestartPolicy: \
             Restart policy in pod template will be overwritten by restart policy in replica spec"]
    );
    w.all_running();
    assert!(notices(&w).is_empty());
}
