//! Clean-up: what is left of a job when it has ended, by policy and outcome (#16, #24, #37).

use training_job::api::CleanPodPolicy;
use training_job::plan::ChildKind;

use crate::world::{Stories, World};

/// A job that has ended, with one worker that ended by itself and one that ran on.
fn ended(mut w: World, well: bool) -> World {
    w = w.started();
    w.pod("worker-0").succeeds();
    w.reconcile();
    if well {
        w.pod("scheduler-0").succeeds();
    } else {
        w.pod("scheduler-0").exits(1);
    }
    w.reconcile().finish_deletions().reconcile();
    w
}

#[test]
fn the_policy_says_what_stays() {
    let roles = "Scheduler=1 Server=1 Worker=2";
    let (all, ended_ones): (&[&str], &[&str]) = (
        &["scheduler-0", "server-0", "worker-0", "worker-1"],
        &["scheduler-0", "worker-0"],
    );
    let policy = |word: &str| World::train(roles, &format!("cleanPodPolicy: {word}"));
    for well in [true, false] {
        let table = [
            ("unset", World::train(roles, ""), ended_ones),
            ("empty", policy("''"), ended_ones),
            ("Running", policy("Running"), ended_ones),
            ("All", policy("All"), &[]),
            ("None", policy("None"), all),
            (
                "unset, None by the operator",
                World::train(roles, "").with_clean_up(CleanPodPolicy::None),
                all,
            ),
            (
                "Running, None by the operator",
                policy("Running").with_clean_up(CleanPodPolicy::None),
                ended_ones,
            ),
        ];
        for (case, world, left) in table {
            let w = ended(world, well);
            assert_eq!(w.pod_names(), left, "{case} {well}");
            assert_eq!(
                w.service_names(),
                left,
                "{case} {well}: a pod that stays keeps its service"
            );
            let runs_on = i32::from(left == all);
            assert_eq!(
                w.counts("Server"),
                (runs_on, 0, 0),
                "{case} {well}: no invented successes"
            );
            assert_eq!(w.counts("Worker"), (runs_on, 1, 0), "{case} {well}");
        }
    }
}

#[test]
fn what_runs_on_under_none_is_counted_as_long_as_it_does() {
    let mut w = ended(
        World::train("Scheduler=1 Server=2 Worker=1", "cleanPodPolicy: None"),
        true,
    );
    assert_eq!(w.counts("Server"), (2, 0, 0));
    w.pod("server-0").vanishes();
    assert_eq!(w.reconcile().counts("Server"), (1, 0, 0));
    w.pod("server-1").deleted_by_user();
    assert_eq!(w.reconcile().counts("Server"), (0, 0, 0));
}

#[test]
fn a_finished_job_never_creates_and_never_changes_its_mind() {
    let mut w = ended(
        World::train("Scheduler=1 Server=1 Worker=2", "cleanPodPolicy: None"),
        true,
    );
    let (status, created) = (w.status(), w.created.len());
    w.pod("worker-1").exits(1);
    w.reconcile();
    w.pod("server-0").vanishes();
    w.reconcile();
    w.scale("Worker", 5).reconcile();
    w.services.clear();
    w.reconcile();
    w.pods.clear();
    w.restart_operator().reconcile();
    assert_eq!(
        (w.state(), w.created.len()),
        (vec!["Created".into(), "Succeeded".to_owned()], created)
    );
    assert_eq!(w.status().completion_time, status.completion_time);
}

#[test]
fn services_of_pods_that_are_gone_already_go_as_well() {
    let mut w = World::train("Scheduler=1 Worker=1", "").started();
    w.pod("scheduler-0").succeeds();
    w.pod("worker-0").succeeds();
    w.reconcile_once();
    w.pods.clear();
    w.reconcile();
    assert!(w.service_names().is_empty());
}

#[test]
fn a_pod_that_goes_takes_its_service_along() {
    let mut w = World::train("Scheduler=1 Server=1", "").started();
    w.pod("scheduler-0").succeeds();
    w.reconcile_once();
    let gone: Vec<_> = w.plan().delete.into_iter().map(|d| (d.kind, d.name)).collect();
    let server = || "job-server-0".to_owned();
    assert_eq!(gone, [(ChildKind::Pod, server()), (ChildKind::Service, server())]);
}

#[test]
fn a_pod_with_a_deadline_of_its_own_is_not_the_jobs_limit() {
    // `None` is obeyed: no limit of the job was reached, though the pod's reason has the same name.
    let mut w = World::train("Scheduler=1 Worker=1", "cleanPodPolicy: None").started();
    w.pod("worker-0").taken(
        "Failed",
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    );
    w.reconcile();
    assert_eq!(
        (w.state(), w.pod_names()),
        (
            vec!["Created".into(), "Failed".to_owned()],
            vec!["scheduler-0".into(), "worker-0".to_owned()]
        )
    );
}

#[test]
fn a_job_that_is_being_deleted_is_left_to_the_garbage_collector() {
    let mut w = World::train("Scheduler=1 Worker=1", "").started();
    let now = w.now;
    w.edit(|job| {
        job.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now))
    });
    w.pod("worker-0").vanishes();
    assert!(w.plan().is_idle());
}

#[test]
fn a_replica_that_failed_and_runs_again_after_the_end_is_counted_once() {
    // Its container was restarted in place, which restarts the job, in the moment in which the job succeeded.
    let policy = "cleanPodPolicy: None, restartScope: Job";
    let mut w = World::train("Scheduler=1 Server=2 Worker=1", policy).started();
    w.pod("server-0").restarts_in_place(137);
    w.pod("scheduler-0").succeeds();
    w.reconcile();
    assert_eq!(w.state(), ["Created", "Succeeded"]);
    let server = &w.status().replica_statuses["Server"];
    assert_eq!((server.active, server.succeeded, server.failed), (1, 0, 1));
}
