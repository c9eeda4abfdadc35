//! The invariant of jobs that a queue admits and evicts.

use serde_json::{Value, json};
use training_job_simulation::world::job::{self, JobType};

use crate::bench::{Bench, JOBS, PODS, condition};

/// Creates a cluster with a job that a queue has admitted to zone a.
async fn admitted() -> Bench {
    let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = json!({"zone": "a"});
    let bench = Bench::with(job).await;
    bench.status(active(2)).await;
    bench
}

fn active(replicas: i64) -> Value {
    json!({"replicaStatuses": {"Worker": {"active": replicas}}})
}

async fn create_in(bench: &Bench, zone: Value) {
    let mut pod = bench.pod("job-worker-0");
    pod["spec"]["nodeSelector"] = zone;
    bench.operator("POST", PODS, pod).await;
}

async fn evict(bench: &Bench) {
    let patch = json!({"spec": {"runPolicy": {"suspend": true}}});
    bench.user("PATCH", &format!("{JOBS}/job"), patch).await;
    Bench::wait_past_allowed_staleness().await;
}

#[tokio::test(start_paused = true)]
async fn i21_a_pod_without_the_selector_of_its_admission() {
    for (zone, expected) in [
        (json!({"zone": "a"}), &[][..]),
        (json!({"zone": "b"}), &["I21"]),
        (Value::Null, &["I21"]),
    ] {
        let bench = admitted().await;
        create_in(&bench, zone).await;
        assert_eq!(bench.violated(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn i21_a_pod_of_a_job_that_is_not_told_to_be_active() {
    let bench = admitted().await;
    bench.status(active(0)).await;
    Bench::wait_past_allowed_staleness().await;
    create_in(&bench, json!({"zone": "a"})).await;
    assert_eq!(bench.violated(), ["I21"]);
}

#[tokio::test(start_paused = true)]
async fn i21_a_restart_that_is_counted_while_suspended() {
    let bench = admitted().await;
    bench.status(json!({"restartCount": 1})).await;
    evict(&bench).await;
    assert_eq!(bench.violated(), [""; 0]);
    bench.status(json!({"restartCount": 2})).await;
    assert_eq!(bench.violated(), ["I21"]);
}

#[tokio::test(start_paused = true)]
async fn i21_a_quota_that_is_handed_on_while_a_pod_is_there() {
    let bench = admitted().await;
    create_in(&bench, json!({"zone": "a"})).await;
    evict(&bench).await;
    let counted = |replicas| {
        let mut status = active(replicas);
        status["conditions"] = json!([condition("Suspended")]);
        status
    };
    bench.status(counted(1)).await;
    assert_eq!(bench.violated(), [""; 0]);
    bench.status(counted(0)).await;
    assert_eq!(bench.violated(), ["I21"]);
}
