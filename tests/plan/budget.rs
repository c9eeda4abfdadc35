//! `backoffLimit`: the failures that count, and the exact limit (#22, #23).

use training_job::api::{Recovery, RestartScope};

use crate::harness::{Act, PlanHarness, Stories};

/// Returns the number of failures of worker 0 after which the job has failed.
fn failures_until_failed(mut w: PlanHarness, fail: Act) -> usize {
    w = w.started();
    for n in 1..10 {
        if fail(w.after(1)).reconcile().state().contains("Failed") {
            let failure = w.status().failure.unwrap();
            assert_eq!(failure.reason, "BackoffLimitExceeded");
            assert_eq!(
                w.message_of("Failed"),
                "Job job has failed because it has reached the specified backoff limit"
            );
            return n;
        }
        w.all_replaced();
    }
    panic!("no limit was reached");
}

#[test]
fn a_limit_of_n_allows_n_replacements() {
    for limit in [0, 1, 3] {
        for roles in [
            "Worker=1:ExitCode",
            "Scheduler=1 Worker=2:ExitCode",
            "Worker=1:OnFailure",
        ] {
            let w = PlanHarness::train(roles, &format!("backoffLimit: {limit}"));
            let n = failures_until_failed(w, |w| w.pod("worker-0").exits(137));
            assert_eq!(n, limit + 1, "{roles} {limit}");
        }
    }
}

#[test]
fn any_failure_exceeds_a_limit_of_0() {
    // The same as under the Go operator.
    for policy in ["Never", "OnFailure"] {
        let w = PlanHarness::train(&format!("Scheduler=1 Worker=2:{policy}"), "backoffLimit: 0");
        assert_eq!(
            failures_until_failed(w, |w| w.pod("worker-0").exits(1)),
            1,
            "{policy}"
        );
    }
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:Never", "backoffLimit: 1").started();
    w.pod("worker-0").exits(1).reconcile();
    assert_eq!(w.status().failure.unwrap().reason, "Error");
}

#[test]
fn a_final_exit_code_is_the_cause_under_a_limit_of_0_too() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "backoffLimit: 0").started();
    w.pod("worker-0").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
    assert_eq!(w.status().failure.unwrap().reason, "Error");
    assert_eq!(
        w.message_of("Failed"),
        "job \"job\" is failing because \"Worker\" replica(s) failed."
    );
}

#[test]
fn restarts_in_place_fail_the_job_when_the_nth_is_seen() {
    // The same as under the Go operator, because restarts in place have happened when they are observed.
    for (limit, expected) in [(0, 1), (1, 1), (3, 3)] {
        let w = PlanHarness::train("Worker=1:OnFailure", &format!("backoffLimit: {limit}"));
        assert_eq!(
            failures_until_failed(w, |w| w.pod("worker-0").restarts_in_place(1)),
            expected,
            "{limit}"
        );
    }
}

#[test]
fn restarts_in_place_that_restart_the_job_are_replacements() {
    let w = PlanHarness::train("Scheduler=1 Worker=1:OnFailure", "backoffLimit: 1");
    assert_eq!(
        failures_until_failed(w, |w| w.pod("worker-0").restarts_in_place(1)),
        2
    );
}

#[test]
fn restarts_in_place_are_counted_once_each() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "backoffLimit: 9").started();
    assert!(
        w.status().recovery.in_place.is_empty(),
        "nothing is remembered of nothing"
    );
    for n in 1..=3 {
        w.pod("worker-0").restarts_in_place(1);
        w.reconcile().restart_operator().reconcile();
        assert_eq!(w.status().restart_count, n);
    }
    // A replacement starts at 0 again, and its own restarts are counted from there.
    w.pod("worker-0").exits(1).reconcile().all_running();
    assert_eq!(w.status().restart_count, 4);
    w.pod("worker-0").restarts_in_place(1);
    assert_eq!(w.reconcile().status().restart_count, 5);
}

#[test]
fn failures_that_restart_together_count_once() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=3:OnFailure", "backoffLimit: 1").started();
    for n in 0..3 {
        w.pod(&format!("worker-{n}")).exits(1);
    }
    assert_eq!(w.reconcile().state(), "Created Restarting");
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn failures_that_restart_one_by_one_count_each() {
    for (limit, then, count) in [(1, "Failed", 0), (2, "Running", 2)] {
        let policy = format!("backoffLimit: {limit}, restartScope: Replica");
        let mut w = PlanHarness::train("Scheduler=1 Worker=3:OnFailure", &policy).started();
        w.pod("worker-0").exits(1).pod("worker-2").exits(1).reconcile();
        assert_eq!(w.state(), format!("Created {then}"), "{limit}");
        assert_eq!(w.status().restart_count, count, "{limit}");
    }
}

#[test]
fn the_count_survives_the_operator_and_the_pods() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1:ExitCode", "backoffLimit: 2").started();
    for n in 1..=2 {
        w.pod("worker-0").exits(137);
        w.reconcile().restart_operator().finish_deletions().reconcile();
        assert_eq!(w.all_running().status().restart_count, n);
    }
    w.pod("worker-0").exits(137);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn one_failure_counts_once_though_the_status_was_lost() {
    // The pods are then of a later attempt than the status records.
    for scope in ["Job", "Role", "Replica"] {
        let policy = format!("restartScope: {scope}, backoffLimit: 5");
        let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", &policy).started();
        for _ in 0..3 {
            w.pod("worker-0").exits(137).all_replaced();
        }
        w.edit(|job| job.status = None).reconcile();
        w.pod("worker-0").exits(137).all_replaced();
        assert_eq!(w.status().restart_count, 1, "{scope}");
        assert_eq!(w.state(), "Created Running", "{scope}");
    }
}

/// A client with the Go operator's types writes back a status without the fields that these types lack.
#[test]
fn a_status_without_fields_that_the_go_types_lack_restarts_nothing() {
    for scope in ["Job", "Role", "Replica"] {
        for restarts in 0..3 {
            let policy = format!("restartScope: {scope}, backoffLimit: 5");
            let mut w = PlanHarness::train("Scheduler=1 Worker=3:ExitCode", &policy).started();
            let fail = |w: &mut PlanHarness| {
                w.pod("worker-0").exits(137).all_replaced();
            };
            for _ in 0..restarts {
                fail(&mut w);
            }
            let before = (w.pod_names(), w.attempts(), w.state());
            w.created.clear();
            w.edit(|job| {
                let status = job.status.as_mut().unwrap();
                (status.restart_count, status.failure) = (0, None);
                status.recovery = Recovery::default();
            });
            w.restart_operator().reconcile().after(60).reconcile();
            assert_eq!(
                (w.pod_names(), w.attempts(), w.state()),
                before,
                "{scope} {restarts}"
            );
            assert_eq!((w.created.len(), w.status().restart_count), (0, 0));
            // The next restart continues from the attempts of the pods.
            fail(&mut w);
            assert_eq!(w.status().restart_count, 1, "{scope} {restarts}");
            assert_eq!(w.attempts()["worker-0"], restarts + 1, "{scope}");
            assert_eq!(w.state(), "Created Running", "{scope} {restarts}");
        }
    }
}

#[test]
fn a_job_whose_status_was_lost_leaves_no_later_pod_behind() {
    let workers = ["job-worker-0", "job-worker-1"];
    let all = ["job-scheduler-0", "job-worker-0", "job-worker-1"];
    for (scope, remade) in [(RestartScope::Job, &all[..]), (RestartScope::Role, &workers)] {
        let mut w = PlanHarness::train("Scheduler=1 Worker=2:ExitCode", "restartScope: Replica").started();
        for _ in 0..2 {
            w.pod("worker-1").exits(137).reconcile().all_running();
        }
        w.edit(|job| {
            job.status = None;
            job.spec.run_policy.as_mut().unwrap().restart_scope = Some(scope.clone());
        });
        w.reconcile().created.clear();
        w.pod("worker-0").exits(137);
        w.reconcile().finish_deletions().reconcile();
        assert_eq!(w.created, remade, "{scope:?}");
    }
}

#[test]
fn an_edited_attempt_annotation_does_not_restart_pods_forever() {
    let mut w = PlanHarness::train("Worker=1:ExitCode", "").started();
    let annotations = w
        .pod("worker-0")
        .object()
        .metadata
        .annotations
        .get_or_insert_default();
    annotations.insert(
        "training.kubeflow.org/restart-attempt".into(),
        u32::MAX.to_string(),
    );
    w.pod("worker-0").exits(137).reconcile().all_running();
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.attempts()["worker-0"], 0);
}

#[test]
fn a_limit_that_is_lowered_waits_for_the_next_failure() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "backoffLimit: 5").started();
    for _ in 0..3 {
        w.pod("worker-0").exits(1).reconcile().all_running();
    }
    w.edit(|job| job.spec.run_policy.as_mut().unwrap().backoff_limit = Some(1));
    assert_eq!(w.reconcile().state(), "Created Running");
    w.pod("worker-0").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn negative_numbers_in_a_status_count_nothing() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "backoffLimit: 1").started();
    w.edit(|job| {
        let recovery = &mut job.status.as_mut().unwrap().recovery;
        recovery.job = -40;
        recovery.replicas.insert("worker-0".into(), i32::MIN);
        recovery.in_place.insert("worker-0".into(), -3);
    });
    assert_eq!(w.reconcile().status().restart_count, 0);
    w.pod("worker-0").exits(1).reconcile().all_running();
    assert_eq!(w.state(), "Created Running");
    assert_eq!(w.status().restart_count, 1);
}

#[test]
fn without_a_limit_restarts_are_unlimited() {
    let mut w = PlanHarness::train("Worker=1:OnFailure", "").started();
    for n in 1..30 {
        w.pod("worker-0").exits(1).reconcile().all_running();
        assert_eq!(w.status().restart_count, n);
    }
    assert_eq!(w.state(), "Created Running");
}

#[test]
fn a_final_failure_fails_the_job_below_the_limit() {
    let mut w = PlanHarness::train("Worker=1:Never", "backoffLimit: 3").started();
    w.pod("worker-0").exits(1).reconcile();
    assert_eq!(
        w.message_of("Failed"),
        "ToyJob job is failed because 1 Worker replica(s) failed."
    );
}

#[test]
fn at_the_limit_everything_stops_whatever_the_clean_up_policy() {
    let mut w = PlanHarness::train(
        "Scheduler=1 Server=1 Worker=1:OnFailure",
        "backoffLimit: 0, cleanPodPolicy: None",
    )
    .started();
    w.events.clear();
    w.pod("worker-0").exits(1);
    w.reconcile().finish_deletions().reconcile();
    assert_eq!(w.pod_names(), ["worker-0"]);
    assert_eq!(w.service_names(), ["worker-0"]);
    assert_eq!(w.counts("Scheduler"), (0, 0, 0));
    assert_eq!(w.counts("Server"), (0, 0, 0));
    assert_eq!(w.counts("Worker"), (0, 0, 1));
    assert!(w.events.iter().all(|e| e.warning && e.reason == "ToyJobFailed") && w.events.len() == 1);
}
