//! Waiting jobs: each long wait has a reason that the job shows.

use std::sync::Arc;

use serde_json::json;

use crate::harness::{PlanHarness, Stories, notices};

/// Sets the PodGroup back to its state before a restart, as a restored backup does.
fn restore_group(w: &mut PlanHarness) {
    let group = w.objects.values_mut().next().unwrap().get_mut("job").unwrap();
    Arc::make_mut(group).annotations.clear();
}

#[test]
fn a_restored_group_belongs_to_the_existing_pods() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "").with_gangs("volcano");
    w.reconcile().phase("Inqueue").all_running();
    w.pod("worker-1").exits(137);
    w.reconcile().finish_deletions().reconcile().phase("Inqueue");
    let attempt = |w: &PlanHarness| {
        let group = &w.objects.values().next().unwrap()["job"];
        group
            .annotations
            .get("training.kubeflow.org/restart-attempt")
            .cloned()
    };
    assert_eq!((attempt(&w).as_deref(), w.pod_names().len()), (Some("1"), 3));
    restore_group(&mut w);
    w.reconcile();
    assert_eq!((attempt(&w).as_deref(), w.pod_names().len()), (Some("1"), 3));
    // The group shows the reason for its wait, and is deleted with its pods.
    w.group().unwrap()["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "Unschedulable", "status": "True", "message": "m"}]});
    restore_group(&mut w);
    w.reconcile();
    assert_eq!(notices(&w).len(), 1, "{:?}", notices(&w));
    w.phase("Inqueue").all_running();
    let uid = |w: &PlanHarness| w.objects.values().next().unwrap()["job"].uid.clone();
    let first = uid(&w);
    w.pod("worker-1").exits(137);
    w.reconcile().finish_deletions().reconcile();
    assert_ne!(uid(&w), first);
    assert_eq!((attempt(&w).as_deref(), w.pod_names().len()), (Some("2"), 0));
}

#[test]
fn a_pod_that_no_scheduler_looks_at_is_reported() {
    let mut w = PlanHarness::train("Worker=2", "");
    w.edit_pods(|spec| spec.scheduler_name = Some("mine".to_owned()));
    w.reconcile();
    assert!(notices(&w).is_empty());
    assert_eq!(
        w.plan().requeue.unwrap().at,
        w.now + jiff::SignedDuration::from_secs(60)
    );
    w.after(60);
    assert_eq!(
        notices(&w),
        [
            "PodNotScheduled: no scheduler has processed pod job-worker-0 for more than one minute; check that the scheduler mine \
             runs; another pod has the same problem"
        ]
    );
    for worker in ["worker-0", "worker-1"] {
        w.pod(worker).is_scheduled();
    }
    assert!(notices(&w).is_empty());
}

#[test]
fn a_pod_that_is_gated_for_long_is_reported() {
    let mut w = PlanHarness::train("Worker=1", "");
    w.reconcile();
    w.pod("worker-0")
        .is_not_scheduled("SchedulingGated", "Scheduling is blocked");
    w.after(299);
    assert!(notices(&w).is_empty(), "somebody may mean it to wait");
    w.after(1);
    assert_eq!(
        notices(&w),
        ["PodGated: pod job-worker-0 has been held back by its scheduling gates for more than five minutes"]
    );
}

#[test]
fn a_container_that_runs_hides_none_that_does_not_start() {
    let started = |containers: serde_json::Value, init: serde_json::Value| {
        let mut w = PlanHarness::train("Worker=1", "");
        w.reconcile().pod("worker-0").is_scheduled();
        let pod = w.pod("worker-0").object();
        let status = pod.status.as_mut().unwrap();
        status.container_statuses = serde_json::from_value(containers).unwrap();
        status.init_container_statuses = serde_json::from_value(init).unwrap();
        let sidecar = json!([{"name": "proxy", "restartPolicy": "Always"}]);
        pod.spec.as_mut().unwrap().init_containers = serde_json::from_value(sidecar).unwrap();
        w.after(300);
        notices(&w)
            .iter()
            .any(|notice| notice.starts_with("PodNotStarted"))
    };
    let container = |name: &str, state: serde_json::Value| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let runs = || json!({"running": {}});
    let waits = |message: &str| json!({"waiting": {"reason": "PodInitializing", "message": message}});
    // A native sidecar with a failing startup probe, and a large image that is pulled beside a sidecar.
    assert!(started(
        json!([container("toy", waits(""))]),
        json!([container("proxy", runs())])
    ));
    assert!(started(
        json!([container("toy", waits("")), container("logs", runs())]),
        json!([])
    ));
    assert!(!started(
        json!([container("toy", waits("")), container("logs", waits("why"))]),
        json!([])
    ));
    assert!(
        !started(
            json!([container("toy", waits(""))]),
            json!([container("fetch", runs())])
        ),
        "it works"
    );
    assert!(!started(json!([container("toy", runs())]), json!([])));
}

#[test]
fn an_object_that_does_not_go_is_reported() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2:OnFailure", "").with_gangs("volcano");
    w.reconcile().phase("Inqueue").all_running();
    let since = w.now;
    let group = w.objects.values_mut().next().unwrap().get_mut("job").unwrap();
    let group = Arc::make_mut(group);
    group.deleting = true;
    let times = training_job::plan::observed::DeletionTimes {
        requested: since,
        due: since,
    };
    group.deletion = Some(times);
    w.services
        .get_mut("job-worker-0")
        .unwrap()
        .metadata
        .deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since));
    w.pods.clear();
    w.reconcile();
    assert!(
        w.pod_names().is_empty(),
        "there is a group, which is not the job's any more"
    );
    assert!(notices(&w).is_empty());
    w.after(30).reconcile();
    assert_eq!(
        notices(&w),
        [format!(
            "ObjectsStuckTerminating: a finalizer blocks the deletion of service job-worker-0 (since {since}) and 1 more; no \
             object can be created under that name until the deletion completes"
        )]
    );
}

#[test]
fn a_group_without_a_status_is_reported_after_a_while() {
    let mut w = PlanHarness::train("Worker=2", "").with_gangs("volcano");
    w.reconcile().phase("Pending");
    assert!(notices(&w).is_empty());
    assert!(w.plan().requeue.is_some());
    w.after(10);
    assert_eq!(
        notices(&w),
        [
            "PodGroupWaits: PodGroup job waits in queue default for pods 2; Volcano reports no reason in its status; \
             see the events of the PodGroup, and the state of the queue"
        ]
    );
}

/// A scheduler often finds a node soon, so the reason alone is not written at once.
#[test]
fn the_status_has_the_reason_if_no_replica_runs() {
    let mut w = PlanHarness::train("Worker=2", "");
    w.reconcile();
    for pod in ["worker-0", "worker-1"] {
        w.pod(pod).is_not_scheduled("Unschedulable", "no node");
    }
    let change = w.plan().status.unwrap();
    let status = &change.status;
    assert_eq!(&*status.ready, "0/2");
    assert_eq!(&*status.waiting_reason, "Unschedulable");
    assert!(!change.urgent);
    w.reconcile();
    assert_eq!(w.plan().status, None, "it is written once");
    w.pod("worker-0").running().reconcile();
    let status = w.status();
    assert_eq!((&*status.ready, &*status.waiting_reason), ("1/2", ""));
}

#[test]
fn a_change_of_the_size_alone_is_not_urgent() {
    let mut w = PlanHarness::train("Worker=2", "").elastic().started();
    assert_eq!(w.status().ready, "2/2");
    w.scale("Worker", 3);
    let change = w.plan().status.unwrap();
    assert_eq!(change.status.recovery.sizes["Worker"], 3);
    assert!(!change.urgent);
}

/// The API server refused to create a pod, and the status says so until the pods are there.
#[test]
fn a_refusal_stays_until_the_missing_pods_exist() {
    let refused = |w: &mut PlanHarness| {
        w.edit(|job| job.status.as_mut().unwrap().waiting_reason = "FailedCreatePod".to_owned());
    };
    let next = |w: &PlanHarness| w.plan().status.map_or_else(|| w.status(), |change| change.status);
    let reason = |w: &PlanHarness| next(w).waiting_reason;
    let mut w = PlanHarness::train("Worker=1", "").elastic();
    w.reconcile().scale("Worker", 2);
    refused(&mut w);
    assert_eq!(reason(&w), "FailedCreatePod", "worker-1 is missing");
    w.reconcile();
    assert_eq!(reason(&w), "", "both exist");

    w.scale("Worker", 3);
    refused(&mut w);
    w.pod("worker-0").running();
    assert_eq!(reason(&w), "FailedCreatePod", "one runs, and worker-2 is missing");

    let mut w = PlanHarness::train("Worker=1", "cleanPodPolicy: All").started();
    w.pod("worker-0").succeeds();
    w.reconcile().finish_deletions().reconcile();
    refused(&mut w);
    assert!(w.pods.is_empty());
    w.edit(|job| job.status.as_mut().unwrap().ready = "1/1".to_owned());
    w.reconcile();
    assert_eq!(reason(&w), String::new(), "it has ended");
    assert_eq!(w.status().ready, "0/1".to_owned(), "it has ended");
}
