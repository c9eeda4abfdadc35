//! The invariant of jobs that a queue admits and evicts.

use serde_json::{Value, json};
use training_job_simulation::world::job::{self, JobType};

use crate::fixture::{Fixture, condition};

/// Creates a cluster with a job that a queue has admitted to zone a.
async fn admitted() -> Fixture {
    let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = json!({"zone": "a"});
    let fixture = Fixture::with(job).await;
    fixture.status(active(2)).await;
    fixture
}

fn active(replicas: i64) -> Value {
    json!({"replicaStatuses": {"Worker": {"active": replicas}}})
}

async fn create_in(fixture: &Fixture, zone: Value) {
    let mut pod = fixture.pod("job-worker-0");
    pod["spec"]["nodeSelector"] = zone;
    fixture.post(pod).await;
}

async fn evict(fixture: &Fixture) {
    let patch = json!({"spec": {"runPolicy": {"suspend": true}}});
    fixture.user("PATCH", "mxjobs", "job", patch).await;
    Fixture::wait_past_allowed_staleness().await;
}

#[tokio::test(start_paused = true)]
async fn i21_a_pod_without_the_selector_of_its_admission() {
    for (zone, expected) in [
        (json!({"zone": "a"}), &[][..]),
        (json!({"zone": "b"}), &["I21"]),
        (Value::Null, &["I21"]),
    ] {
        let fixture = admitted().await;
        create_in(&fixture, zone).await;
        assert_eq!(fixture.violated(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn i21_a_pod_of_a_job_whose_status_is_not_active() {
    let fixture = admitted().await;
    fixture.status(active(0)).await;
    Fixture::wait_past_allowed_staleness().await;
    create_in(&fixture, json!({"zone": "a"})).await;
    assert_eq!(fixture.violated(), ["I21"]);
}

#[tokio::test(start_paused = true)]
async fn i21_a_restart_that_is_counted_while_suspended() {
    let fixture = admitted().await;
    fixture.status(json!({"restartCount": 1})).await;
    evict(&fixture).await;
    assert_eq!(fixture.violated(), [""; 0]);
    fixture.status(json!({"restartCount": 2})).await;
    assert_eq!(fixture.violated(), ["I21"]);
}

#[tokio::test(start_paused = true)]
async fn i21_a_quota_that_is_released_while_a_pod_exists() {
    let fixture = admitted().await;
    create_in(&fixture, json!({"zone": "a"})).await;
    evict(&fixture).await;
    let counted = |replicas| {
        let mut status = active(replicas);
        status["conditions"] = json!([condition("Suspended")]);
        status
    };
    fixture.status(counted(1)).await;
    assert_eq!(fixture.violated(), [""; 0]);
    fixture.status(counted(0)).await;
    assert_eq!(fixture.violated(), ["I21"]);
}
