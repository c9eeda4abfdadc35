//! The invariants that are checked at each change or watch.

use std::time::Duration;

use serde_json::{Value, json};
use training_job_simulation::faults::CallFault;
use training_job_simulation::world::job::{self, JobType};

use crate::fixture::*;

#[tokio::test(start_paused = true)]
async fn a_correct_operator_violates_nothing() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    fixture.create("job-worker-1").await;
    let status = json!({"startTime": "2030-01-01T00:00:00Z", "conditions": [condition("Running")],
        "replicaStatuses": {"Worker": {"active": 2}}});
    fixture.status(status).await;
    assert!(
        fixture.violated().is_empty(),
        "{:?}",
        fixture.monitor.violations()
    );
}

#[tokio::test(start_paused = true)]
async fn i1_a_second_pod_of_a_rank() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    let mut twin = fixture.pod("job-worker-1");
    twin["metadata"]["labels"]["training.kubeflow.org/replica-index"] = json!("0");
    fixture.post(twin).await;
    assert_eq!(fixture.violated(), ["I1"]);
}

#[tokio::test(start_paused = true)]
async fn i2_a_pod_beyond_the_replicas() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-2").await;
    assert_eq!(fixture.violated(), ["I2"]);
}

#[tokio::test(start_paused = true)]
async fn i2_children_of_the_other_layout() {
    let (service, map) = ("job-hosts", SHARED);
    let plain = Fixture::new().await;
    plain.make("Service", service).await;
    plain.make("ConfigMap", map).await;
    assert_eq!(plain.violated(), ["I2", "I2"]);
    let compact = Fixture::compact().await;
    compact.make("Service", service).await;
    compact.make("ConfigMap", map).await;
    assert_eq!(compact.violated(), [""; 0]);
    compact.make("Service", "job-worker-0").await;
    compact.make("ConfigMap", "job-env").await;
    assert_eq!(compact.violated(), ["I2", "I2"]);
}

#[tokio::test(start_paused = true)]
async fn i3_a_finished_job_that_runs_again_and_a_pod_after_its_end() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-1").await;
    fixture.succeed("job-worker-1").await;
    fixture.set_condition("Succeeded").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    fixture.create("job-worker-0").await;
    fixture.set_condition("Running").await;
    assert_eq!(fixture.violated(), ["I3", "I3"]);
}

#[tokio::test(start_paused = true)]
async fn i4_a_succeeded_replica_that_runs_again() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    fixture.succeed("job-worker-0").await;
    fixture
        .status(json!({"recovery": {"completed": {"Worker": "0"}}}))
        .await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    fixture.remove("pods", "job-worker-0").await;
    fixture.create("job-worker-0").await;
    assert_eq!(fixture.violated(), ["I4"]);
}

#[tokio::test(start_paused = true)]
async fn i5_a_pod_of_a_deleted_job() {
    let fixture = Fixture::new().await;
    let pod = fixture.pod("job-worker-0");
    fixture.user("DELETE", "mxjobs", "job", json!({})).await;
    Fixture::wait_past_allowed_staleness().await;
    fixture.post(pod).await;
    assert_eq!(fixture.violated(), ["I5"]);
}

#[tokio::test(start_paused = true)]
async fn i6_a_delete_that_names_no_uid_and_a_foreign_object() {
    let fixture = Fixture::new().await;
    let mut foreign = fixture.pod("foreign");
    foreign["metadata"]["ownerReferences"] = json!(null);
    fixture.user("POST", "pods", "", foreign).await;
    fixture.delete("pods", "foreign", Some(0)).await;
    // One change marks it as deleted, another one removes it.
    assert_eq!(fixture.violated(), ["I6", "I6"]);
    fixture.create("job-worker-0").await;
    fixture.delete_without_uid("pods", "job-worker-0").await;
    assert!(!fixture.network.deletes_without_uid().is_empty());
}

#[tokio::test(start_paused = true)]
async fn i6_a_patch_that_names_no_uid_or_changes_more_than_labels() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    let uid = &fixture.stored("pods", "job-worker-0")["metadata"]["uid"];
    for (uid, change, violated) in [
        (uid, json!({"labels": {"a": "b"}}), 0),
        (&Value::Null, json!({"labels": {"a": "c"}}), 1),
        (uid, json!({"annotations": {"a": "b"}}), 1),
    ] {
        let before = fixture.violated().len();
        let mut meta = change;
        if !uid.is_null() {
            meta["uid"] = uid.clone();
        }
        let patch = json!({ "metadata": meta });
        fixture.patch("pods", "job-worker-0", patch).await;
        assert_eq!(
            fixture.violated().len() - before,
            violated,
            "{:?}",
            fixture.violated()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn i9_a_pod_that_is_created_again_and_again() {
    let fixture = Fixture::new().await;
    for _ in 0..13 {
        fixture.create("job-worker-0").await;
        fixture.remove("pods", "job-worker-0").await;
    }
    assert_eq!(fixture.violated(), ["I9"]);
}

#[tokio::test(start_paused = true)]
async fn i10_counters_that_fall_and_conditions_that_contradict() {
    let fixture = Fixture::new().await;
    fixture
        .status(json!({"restartCount": 2, "startTime": "2030-01-01T00:00:00Z", "replicaStatuses": {"Worker": {}}}))
        .await;
    fixture.status(json!({"restartCount": 1})).await;
    fixture.status(json!({"startTime": "2030-01-01T00:00:01Z"})).await;
    fixture
        .status(json!({"conditions": [condition("Running"), condition("Failed")]}))
        .await;
    assert_eq!(fixture.violated(), ["I10", "I10", "I10"]);
}

#[tokio::test(start_paused = true)]
async fn i10_more_replicas_than_there_are() {
    let fixture = Fixture::new().await;
    fixture
        .status(json!({"replicaStatuses": {"Worker": {"active": 2, "failed": 1}}}))
        .await;
    assert_eq!(fixture.violated(), ["I10"]);
}

#[tokio::test(start_paused = true)]
async fn i10_a_success_of_a_pod_that_was_taken_away() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    let pod = json!({"conditions": [{"type": "DisruptionTarget", "status": "True",
        "lastTransitionTime": "2029-12-31T23:59:59Z"}]});
    let pod = json!({"status": pod});
    fixture.user("PATCH", "pods", "job-worker-0/status", pod).await;
    fixture.succeed("job-worker-0").await;
    fixture
        .status(json!({"recovery": {"completed": {"Worker": "0"}}}))
        .await;
    assert_eq!(fixture.violated(), ["I10"]);
}

#[tokio::test(start_paused = true)]
async fn i23_conditions_out_of_order_and_a_success_without_a_run() {
    let at = |type_: &str, status: &str, second: u32| json!({"type": type_, "status": status, "lastTransitionTime": format!("2030-01-01T00:00:{second:02}Z")});
    let fixture = Fixture::new().await;
    let born = fixture.job()["metadata"]["creationTimestamp"].clone();
    let created = json!({"type": "Created", "status": "True", "lastTransitionTime": born});
    fixture.create("job-worker-0").await;
    fixture.succeed("job-worker-0").await;
    let status = |conditions: Vec<serde_json::Value>| json!({ "conditions": conditions });
    fixture
        .status(status(vec![created.clone(), at("Running", "True", 7)]))
        .await;
    assert!(fixture.violated().is_empty(), "{:?}", fixture.violated());
    fixture
        .status(status(vec![at("Created", "True", 7), at("Running", "True", 7)]))
        .await;
    assert_eq!(fixture.violated(), ["I23"], "the same time");
    fixture
        .status(status(vec![at("Created", "True", 3), at("Running", "True", 7)]))
        .await;
    assert_eq!(
        fixture.violated(),
        ["I23", "I23"],
        "it was created at another time"
    );
    fixture.status(status(vec![created.clone()])).await;
    fixture
        .status(status(vec![created, at("Succeeded", "True", 9)]))
        .await;
    assert_eq!(fixture.violated(), ["I23", "I23", "I23"], "it never ran");
}

#[tokio::test(start_paused = true)]
async fn i10_successes_that_never_happened() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    fixture.create("job-worker-1").await;
    let completed = |workers: &str| json!({"recovery": {"completed": {"Worker": workers}}});
    fixture.set_condition("Succeeded").await;
    assert_eq!(fixture.violated(), ["I10"]);
    fixture.succeed("job-worker-0").await;
    fixture.status(completed("0")).await;
    assert_eq!(fixture.violated(), ["I10"], "this one succeeded");
    fixture.status(completed("0-1")).await;
    assert_eq!(fixture.violated(), ["I10", "I10"]);
}

#[tokio::test(start_paused = true)]
async fn i11_a_deletion_without_a_reason() {
    let fixture = Fixture::new().await;
    fixture.create("job-worker-0").await;
    fixture.delete("pods", "job-worker-0", None).await;
    assert_eq!(fixture.violated(), ["I11"]);
}

#[tokio::test(start_paused = true)]
async fn i11_a_map_that_is_deleted_while_the_job_runs() {
    let fixture = Fixture::compact().await;
    fixture.make("ConfigMap", SHARED).await;
    fixture.delete("configmaps", SHARED, None).await;
    assert_eq!(fixture.violated(), ["I11"]);
}

#[tokio::test(start_paused = true)]
async fn i13_a_pod_without_its_environment() {
    let fixture = Fixture::compact().await;
    fixture.post(fixture.sharing_pod("job-worker-0")).await;
    assert_eq!(fixture.violated(), ["I13"], "it never was");
    fixture.make("ConfigMap", SHARED).await;
    fixture.post(fixture.sharing_pod("job-worker-1")).await;
    assert_eq!(fixture.violated(), ["I13"], "this one is");
    fixture.remove("configmaps", SHARED).await;
    fixture.remove("pods", "job-worker-0").await;
    Fixture::wait_past_allowed_staleness().await;
    fixture.post(fixture.sharing_pod("job-worker-0")).await;
    assert_eq!(fixture.violated(), ["I13", "I13"], "it is gone for long");
}

#[tokio::test(start_paused = true)]
async fn i18_a_watch_that_is_not_renewed_in_time() {
    let fixture = Fixture::new().await;
    let known = fixture.cluster.resource_version();
    fixture.create("job-worker-0").await;
    fixture.watch(known).await;
    Fixture::wait_past_allowed_staleness().await;
    fixture.watch(fixture.cluster.resource_version()).await;
    assert_eq!(fixture.violated(), [""; 0], "there is no news");
    fixture.watch(known).await;
    assert_eq!(fixture.violated(), ["I18"]);
    fixture.network.fail_next("watch", "pods", 1, CallFault::Reset);
    fixture.watch(known).await;
    fixture.watch(known).await;
    assert_eq!(fixture.violated(), ["I18"], "the network is to blame");
    Fixture::wait_past_allowed_staleness().await;
    fixture.watch(known).await;
    assert_eq!(fixture.violated(), ["I18", "I18"], "not for so long");
}

/// The operator deletes a pod in which a sidecar runs on, at this time after the end of its job.
async fn sidecar_is_deleted(after: Duration, run_policy: Value) -> Vec<&'static str> {
    let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
    job["spec"]["runPolicy"] = run_policy;
    let fixture = Fixture::with(job).await;
    fixture.create("job-worker-0").await;
    let container = |name: &str, state: Value| json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let ended = json!({"terminated": {"exitCode": 0, "finishedAt": "2030-01-01T00:00:00Z"}});
    let containers = [
        container("mxnet", ended),
        container("logs", json!({"running": {}})),
    ];
    let status = json!({"status": {"phase": "Running", "containerStatuses": containers}});
    fixture.user("PATCH", "pods", "job-worker-0/status", status).await;
    let at = |type_: &str, second: u32| json!({"type": type_, "status": "True", "lastTransitionTime": format!("2030-01-01T00:00:0{second}Z")});
    let born = fixture.job()["metadata"]["creationTimestamp"].clone();
    let created = json!({"type": "Created", "status": "True", "lastTransitionTime": born});
    fixture
        .status(json!({"conditions": [created.clone(), at("Running", 6)]}))
        .await;
    let ran = json!({"type": "Running", "status": "False", "lastTransitionTime": "2030-01-01T00:00:08Z"});
    fixture
        .status(json!({"conditions": [created, ran, at("Succeeded", 8)]}))
        .await;
    tokio::time::sleep(after).await;
    fixture.delete("pods", "job-worker-0", Some(30)).await;
    fixture.violated()
}

#[tokio::test(start_paused = true)]
async fn i26_a_sidecar_is_cut_off() {
    let soon = Duration::from_secs(60);
    assert_eq!(sidecar_is_deleted(soon, json!({})).await, ["I26"]);
    assert_eq!(sidecar_is_deleted(soon * 10, json!({})).await, [""; 0]);
    assert_eq!(
        sidecar_is_deleted(soon, json!({"cleanPodPolicy": "All"})).await,
        [""; 0]
    );
}
