//! Sidecar containers, which do not affect the result of the training.

use serde_json::json;
use training_job::api::JobStatus;

use crate::harness::{PlanHarness, Stories};

/// Returns a job whose pods have a sidecar, native or not.
pub(crate) fn with_sidecar(roles: &str, fields: &str, native: bool) -> PlanHarness {
    let mut w = PlanHarness::train(roles, fields);
    if !native {
        return w.with_container("logs", true);
    }
    w.edit_pods(|spec| {
        let mut sidecar = spec.containers[0].clone();
        sidecar.name = "logs".to_owned();
        sidecar.restart_policy = Some("Always".to_owned());
        spec.init_containers = Some(vec![sidecar]);
    });
    w
}

#[test]
fn a_sidecar_that_restarts_is_neither_a_failure_nor_counted() {
    for scope in ["Job", "Role", "Replica"] {
        for native in [true, false] {
            let fields = format!("restartScope: {scope}, backoffLimit: 1");
            let mut w = with_sidecar("Scheduler=1:OnFailure Worker=2:OnFailure", &fields, native).started();
            if native {
                w.pod("worker-1")
                    .object()
                    .status
                    .as_mut()
                    .unwrap()
                    .init_container_statuses = serde_json::from_value(
                    json!([{"name": "logs", "image": "", "imageID": "", "ready": true, "restartCount": 0}]),
                )
                .unwrap();
            }
            for _ in 0..5 {
                w.pod("worker-1").restarts_in("logs", 1).reconcile();
            }
            let case = format!("{scope} {native}");
            assert_eq!(w.state(), "Created Running", "{case}");
            assert_eq!(w.status().restart_count, 0, "{case}");
            assert_eq!(w.status().failure, None, "{case}");
            // Restarts of the framework's own container do count.
            w.pod("worker-1").restarts_in("toy", 1).reconcile();
            assert!(w.status().restart_count > 0 || w.status().is_finished(), "{case}");
        }
    }
}

/// The kubelet ends the other containers of a pod that is being deleted.
#[test]
fn no_container_is_reported_to_keep_a_pod_that_is_being_deleted() {
    let mut w = with_sidecar("Worker=2", "restartScope: Replica", false).started();
    let is_reported = |w: &PlanHarness| {
        let mut notices = w.plan().notices.into_iter();
        notices.any(|notice| notice.reason == "ContainersStillRunning")
    };
    w.pod("worker-0").main_container_ends(0);
    assert!(is_reported(&w));
    w.pod("worker-0").deleted_by_user();
    assert!(!is_reported(&w));
}

#[test]
fn once_the_frameworks_container_has_ended_a_sidecar_keeps_no_replica_running() {
    let ends = |code: i32| -> (PlanHarness, JobStatus) {
        let mut w = with_sidecar("Worker=2", "", false).started();
        w.pod("worker-0").main_container_ends(code);
        w.pod("worker-1").main_container_ends(code);
        let notice = w.plan().notices.remove(0);
        assert_eq!(notice.reason, "ContainersStillRunning");
        assert_eq!(
            notice.message,
            format!(
                "container toy of pod job-worker-0 ended with exit code {code}, which decides the result of the replica, \
                 but the pod still runs for at most 600 s after the end of the job because of logs; unless it ends by \
                 itself, make it a native sidecar, which is an init container with restartPolicy Always; another pod has \
                 the same problem"
            )
        );
        w.reconcile();
        let status = w.status();
        (w, status)
    };
    let (w, status) = ends(0);
    assert_eq!(w.state(), "Created Succeeded");
    assert_eq!(w.pod_names(), ["worker-0", "worker-1"], "the sidecars have time");
    assert_eq!(status.failure, None);
    let (w, status) = ends(3);
    assert_eq!(w.state(), "Created Failed");
    let failure = status.failure.unwrap();
    assert_eq!(failure.container.as_deref(), Some("toy"));
    assert_eq!(failure.exit_code, Some(3));
}

/// The kubelet ends native sidecars itself. A deleted pod has no log.
#[test]
fn a_pod_with_nothing_but_native_sidecars_is_not_cleaned_up() {
    for (policy, kept) in [("", true), ("cleanPodPolicy: All", false)] {
        let mut w = with_sidecar("Worker=2", policy, true).started();
        w.pod("worker-0").main_container_ends(0);
        w.pod("worker-1").main_container_ends(0).reconcile();
        assert_eq!(w.state(), "Created Succeeded");
        let names = match kept {
            true => ["worker-0", "worker-1"],
            false => ["(worker-0)", "(worker-1)"],
        };
        assert_eq!(w.pod_names(), names);
    }
    // The kubelet would start this container again.
    let mut w = with_sidecar("Scheduler=1 Worker=1:OnFailure", "", true).started();
    w.pod("worker-0").main_container_ends(3);
    w.pod("scheduler-0").main_container_ends(0).reconcile();
    assert_eq!(w.pod_names(), ["scheduler-0", "(worker-0)"]);
}

#[test]
fn a_container_that_cannot_start_keeps_no_replica_from_ending() {
    for (code, state) in [(0, "Succeeded"), (3, "Failed")] {
        let mut w = with_sidecar("Worker=1", "", false).started();
        // The kubelet reports Pending while any container has not started.
        w.pod("worker-0").main_container_ends(code);
        let status = w.pod("worker-0").object().status.as_mut().unwrap();
        status.phase = Some("Pending".to_owned());
        let mut containers = status.container_statuses.iter_mut().flatten();
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        containers.find(|c| c.name == "logs").unwrap().state = Some(serde_json::from_value(waiting).unwrap());
        assert_eq!(w.reconcile().state(), format!("Created {state}"), "{code}");
    }
    // A container that its kubelet restarts has not ended.
    let mut w = with_sidecar("Worker=1:OnFailure", "", false).started();
    w.pod("worker-0").main_container_ends(3);
    w.pod("worker-0").object().status.as_mut().unwrap().phase = Some("Pending".to_owned());
    w.reconcile();
    assert!(!w.status().is_finished());
}

#[test]
fn a_success_is_held_for_a_moment_though_a_sidecar_runs_on() {
    for native in [true, false] {
        let mut w = with_sidecar("Scheduler=1 Worker=1:ExitCode", "", native).started();
        w.pod("scheduler-0").main_container_ends(0);
        w.observe_end("scheduler-0").reconcile();
        assert_eq!(w.state(), "Created Running", "{native}");
        // All workers raised an error, and the scheduler still succeeded.
        w.pod("worker-0").exits(1).reconcile();
        assert_eq!(w.state(), "Created Failed", "{native}");
    }
}

#[test]
fn a_pod_of_which_only_a_sidecar_runs_is_not_active_after_a_failure() {
    let mut w = with_sidecar("Worker=2", "cleanPodPolicy: None", false);
    w.reconcile().pod("worker-0").running().reconcile();
    w.pod("worker-0").main_container_ends(3).reconcile();
    assert_eq!(w.state(), "Created Failed");
    assert_eq!(w.counts("Worker"), (0, 0, 1), "the other one never started");
}

#[test]
fn a_container_that_its_kubelet_restarts_has_not_ended() {
    for (policy, code, ended) in [
        ("OnFailure", 1, false),
        ("OnFailure", 0, true),
        ("Always", 0, false),
        ("Never", 0, true),
        ("ExitCode", 0, true),
    ] {
        let mut w = with_sidecar(&format!("Worker=1:{policy}"), "", false).started();
        w.pod("worker-0").main_container_ends(code).reconcile();
        assert_eq!(w.status().is_finished(), ended, "{policy} {code}");
    }
}

#[test]
fn an_init_container_that_keeps_failing_reaches_the_limit_in_every_scope() {
    for scope in ["Job", "Role", "Replica"] {
        let fields = format!("restartScope: {scope}, backoffLimit: 3");
        let mut w = PlanHarness::train("Scheduler=1:OnFailure Worker=1:OnFailure", &fields);
        w.reconcile().pod("worker-0").running();
        w.pod("scheduler-0").init_restarts("fetch", 2);
        assert_eq!(w.reconcile().status().restart_count, 2, "{scope}");
        w.pod("scheduler-0").init_restarts("fetch", 8).reconcile();
        assert_eq!(w.state(), "Created Failed", "{scope}");
        let failure = w.status().failure.unwrap();
        assert_eq!(failure.reason, "BackoffLimitExceeded", "{scope}");
        assert_eq!(failure.container.as_deref(), Some("fetch"), "{scope}");
        assert_eq!(failure.exit_code, Some(1), "{scope}");
        assert_eq!(failure.pod.as_deref(), Some("job-scheduler-0"), "{scope}");
    }
}
