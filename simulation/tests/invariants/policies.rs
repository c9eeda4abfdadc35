//! The invariants of failure and success policies, and of roles that start after others.

use serde_json::{Value, json};
use training_job_simulation::world::job::{self, JobType};

use crate::bench::{Bench, MAPS, PODS, condition};

async fn with_policy(policy: Value) -> Bench {
    let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
    job["spec"]["runPolicy"] = policy;
    Bench::with(job).await
}

#[tokio::test(start_paused = true)]
async fn i19_a_launcher_before_its_workers() {
    for started in [false, true] {
        let job = job::new(JobType::Mpi, "job", &[("Launcher", 1), ("Worker", 1)], "Never");
        let bench = Bench::with(job).await;
        bench
            .operator("POST", MAPS, bench.child("ConfigMap", "job-config"))
            .await;
        bench.create("job-worker-0").await;
        if started {
            let running = json!({"status": {"phase": "Running"}});
            let path = format!("{PODS}/job-worker-0/status");
            bench.user("PATCH", &path, running).await;
        }
        bench.create("job-launcher").await;
        assert_eq!(bench.violated().is_empty(), started, "{:?}", bench.violated());
        assert!(bench.violated().iter().all(|id| *id == "I19"));
    }
}

#[tokio::test(start_paused = true)]
async fn i20_a_restart_too_many_or_one_that_is_ignored() {
    let bench = with_policy(json!({"failurePolicy": {"maxRestarts": 1}})).await;
    bench.status(json!({"restartCount": 1})).await;
    assert_eq!(bench.violated(), [""; 0]);
    bench.status(json!({"restartCount": 2})).await;
    assert_eq!(bench.violated(), ["I20"]);

    let bench = with_policy(json!({"failurePolicy": {"rules": [{"action": "Ignore"}]}})).await;
    bench.status(json!({"restartCount": 1})).await;
    assert_eq!(bench.violated(), ["I20"]);
}

#[tokio::test(start_paused = true)]
async fn i20_a_success_that_the_policy_does_not_make_one() {
    for (operator, expected) in [("All", &["I20"][..]), ("Any", &[])] {
        let bench = with_policy(json!({"successPolicy": {"operator": operator}})).await;
        bench.create("job-worker-0").await;
        bench.create("job-worker-1").await;
        bench.succeed("job-worker-0").await;
        bench
            .status(json!({"conditions": [condition("Succeeded")]}))
            .await;
        assert_eq!(bench.violated(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn i2_a_child_of_a_job_that_is_left_alone() {
    let bench = with_policy(json!({"managedBy": "kueue.x-k8s.io/multikueue"})).await;
    bench.create("job-worker-0").await;
    assert_eq!(bench.violated(), ["I2"]);
}
