//! Clean-up: the remaining pods of a finished job, by policy and outcome (#16, #24, #37).

use training_job::api::CleanPodPolicy;
use training_job::plan::ChildKind;

use crate::harness::{PlanHarness, Stories};

/// Returns a job that has ended, with one worker that ended by itself and one that kept running.
fn ended(mut w: PlanHarness, well: bool) -> PlanHarness {
    w = w.started();
    w.pod("worker-0").succeeds().reconcile();
    if well {
        w.pod("scheduler-0").succeeds();
    } else {
        w.pod("scheduler-0").exits(1);
    }
    w.reconcile().finish_deletions().reconcile();
    w
}

#[test]
fn the_clean_pod_policy_decides_which_pods_stay() {
    let roles = "Scheduler=1 Server=1 Worker=2";
    let (all, ended_ones): (&[&str], &[&str]) = (
        &["scheduler-0", "server-0", "worker-0", "worker-1"],
        &["scheduler-0", "worker-0"],
    );
    let policy = |word: &str| PlanHarness::train(roles, &format!("cleanPodPolicy: {word}"));
    for well in [true, false] {
        let table = [
            ("unset", PlanHarness::train(roles, ""), ended_ones),
            ("empty", policy("''"), ended_ones),
            ("Running", policy("Running"), ended_ones),
            ("All", policy("All"), &[]),
            ("None", policy("None"), all),
            (
                "unset, None by the operator",
                PlanHarness::train(roles, "").with_clean_up(CleanPodPolicy::None),
                all,
            ),
            (
                "Running, None by the operator",
                policy("Running").with_clean_up(CleanPodPolicy::None),
                ended_ones,
            ),
        ];
        for (case, harness, left) in table {
            let w = ended(harness, well);
            assert_eq!(w.pod_names(), left, "{case} {well}");
            assert_eq!(
                w.service_names(),
                left,
                "{case} {well}: a pod that stays keeps its service"
            );
            // In a job that has succeeded, pods that still ran count as succeeded, as under the Go operator.
            let (runs_on, done) = (i32::from(left == all && !well), i32::from(well));
            assert_eq!(w.counts("Server"), (runs_on, done, 0), "{case} {well}");
            assert_eq!(w.counts("Worker"), (runs_on, 1 + done, 0), "{case} {well}");
        }
    }
}

#[test]
fn running_pods_after_a_failure_are_counted_under_policy_none() {
    let mut w = ended(
        PlanHarness::train("Scheduler=1 Server=2 Worker=1", "cleanPodPolicy: None"),
        false,
    );
    assert_eq!(w.counts("Server"), (2, 0, 0));
    w.pod("server-0").vanishes();
    assert_eq!(w.reconcile().counts("Server"), (1, 0, 0));
    w.pod("server-1").deleted_by_user();
    assert_eq!(w.reconcile().counts("Server"), (0, 0, 0));
}

#[test]
fn nothing_is_active_once_an_edited_clean_up_policy_has_every_pod_deleted() {
    for well in [true, false] {
        let mut w = ended(
            PlanHarness::train("Scheduler=1 Server=2 Worker=1", "cleanPodPolicy: None"),
            well,
        );
        w.edit(|job| {
            let policy = job.spec.run_policy.get_or_insert_default();
            policy.clean_pod_policy = Some(CleanPodPolicy::Running);
        });
        w.reconcile().finish_deletions().reconcile();
        let active: Vec<_> = w.status().replica_statuses.values().map(|r| r.active).collect();
        assert_eq!(active, [0, 0, 0], "{well}");
    }
}

/// No replica of a finished job is active without a running pod, whoever wrote the status.
#[test]
fn edited_active_counts_of_a_finished_job_are_corrected() {
    for policy in ["None", "Running", "All"] {
        for well in [true, false] {
            for broken in [true, false] {
                let policy = format!("cleanPodPolicy: {policy}");
                let mut w = ended(PlanHarness::train("Scheduler=1 Server=1 Worker=2", &policy), well);
                w.finish_deletions().reconcile();
                w.pods.clear();
                w.reconcile();
                let mut status = w.status();
                for role in ["Worker", "Nobody"] {
                    status.replica_statuses.entry(role.to_owned()).or_default().active = 99;
                }
                w.edit(|job| job.status = Some(status));
                if broken {
                    w.scale("Worker", -1);
                }
                w.reconcile();
                let active = |w: &PlanHarness| -> Vec<i32> {
                    let roles = w.status().replica_statuses;
                    roles.values().map(|role| role.active).collect()
                };
                assert!(
                    active(&w).iter().all(|n| *n == 0),
                    "{policy} {well} {broken}: {:?}",
                    active(&w)
                );
            }
        }
    }
}

#[test]
fn a_finished_job_never_creates_and_never_changes_its_mind() {
    let mut w = ended(
        PlanHarness::train("Scheduler=1 Server=1 Worker=2", "cleanPodPolicy: None"),
        true,
    );
    let (status, created) = (w.status(), w.created.len());
    w.pod("worker-1").exits(1).reconcile();
    w.pod("server-0").vanishes().reconcile();
    w.scale("Worker", 5).reconcile();
    w.services.clear();
    w.reconcile();
    w.pods.clear();
    assert_eq!(w.restart_operator().reconcile().state(), "Created Succeeded");
    assert_eq!(w.created.len(), created);
    assert_eq!(w.status().completion_time, status.completion_time);
}

#[test]
fn services_of_pods_that_are_gone_already_go_as_well() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    w.pod("scheduler-0").succeeds().pod("worker-0").succeeds();
    w.reconcile_once();
    w.pods.clear();
    w.reconcile();
    assert!(w.service_names().is_empty());
}

#[test]
fn a_pod_that_goes_takes_its_service_along() {
    let mut w = PlanHarness::train("Scheduler=1 Server=1", "").started();
    w.pod("scheduler-0").succeeds().reconcile_once();
    let gone: Vec<_> = w.plan().delete.into_iter().map(|d| (d.kind, d.name)).collect();
    let server = || "job-server-0".to_owned();
    assert_eq!(gone, [(ChildKind::Pod, server()), (ChildKind::Service, server())]);
}

#[test]
fn a_pod_with_a_deadline_of_its_own_is_not_the_jobs_limit() {
    // `None` is obeyed, because no limit of the job was reached, although the pod's reason has the same name.
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "cleanPodPolicy: None").started();
    w.pod("worker-0").taken(
        "Failed",
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    );
    assert_eq!(w.reconcile().state(), "Created Failed".to_owned());
    assert_eq!(w.pod_names(), vec!["scheduler-0".into(), "worker-0".to_owned()]);
}

#[test]
fn a_job_that_is_being_deleted_is_left_to_the_garbage_collector() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "").started();
    let now = w.now;
    w.edit(|job| {
        job.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now))
    });
    w.pod("worker-0").vanishes();
    assert!(w.plan().is_idle());
}

#[test]
fn a_replica_that_failed_and_runs_again_after_the_end_is_counted_once() {
    // The container was restarted in place, which restarts the job, just when the job succeeded.
    let policy = "cleanPodPolicy: None, restartScope: Job";
    let mut w = PlanHarness::train("Scheduler=1 Server=2 Worker=1", policy).started();
    w.pod("server-0").restarts_in_place(137);
    w.pod("scheduler-0").succeeds().reconcile();
    assert_eq!(w.state(), "Created Succeeded");
    let server = &w.status().replica_statuses["Server"];
    assert_eq!((server.active, server.succeeded, server.failed), (0, 1, 1));
}

/// Some kubelets report the end of a pod without its containers.
#[test]
fn a_pod_without_container_statuses_ends_with_its_phase() {
    for phase in ["Succeeded", "Failed"] {
        let mut w = PlanHarness::train("Worker=1:Never", "").started();
        w.pod("worker-0").taken(phase, "", "");
        assert_eq!(w.reconcile().state(), format!("Created {phase}"));
    }
}

#[test]
fn a_failed_pod_is_a_failure_though_its_container_exited_with_0() {
    let mut w = PlanHarness::train("Worker=1:Never", "").started();
    w.pod("worker-0").ends_as_it_is_taken("DeadlineExceeded", 0);
    assert_eq!(w.reconcile().state(), "Created Failed");
}
