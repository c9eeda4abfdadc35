//! The invariants of failure and success policies, and of roles that start after others.

use std::time::Duration;

use serde_json::{Value, json};
use training_job_simulation::world::job::{self, JobType};

use crate::fixture::Fixture;

async fn with_policy(policy: Value) -> Fixture {
    let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
    job["spec"]["runPolicy"] = policy;
    Fixture::with(job).await
}

#[tokio::test(start_paused = true)]
async fn i19_a_launcher_before_its_workers() {
    for started in [false, true] {
        let job = job::new(JobType::Mpi, "job", &[("Launcher", 1), ("Worker", 1)], "Never");
        let fixture = Fixture::with(job).await;
        fixture.make("ConfigMap", "job-config").await;
        fixture.create("job-worker-0").await;
        if started {
            fixture.run("job-worker-0").await;
        }
        fixture.create("job-launcher").await;
        assert_eq!(fixture.violated().is_empty(), started, "{:?}", fixture.violated());
        assert!(fixture.violated().iter().all(|id| *id == "I19"));
    }
}

#[tokio::test(start_paused = true)]
async fn i20_a_restart_too_many_or_one_that_is_ignored() {
    let fixture = with_policy(json!({"failurePolicy": {"maxRestarts": 1}})).await;
    fixture.status(json!({"restartCount": 1})).await;
    assert_eq!(fixture.violated(), [""; 0]);
    fixture.status(json!({"restartCount": 2})).await;
    assert_eq!(fixture.violated(), ["I20"]);

    let fixture = with_policy(json!({"failurePolicy": {"rules": [{"action": "Ignore"}]}})).await;
    fixture.status(json!({"restartCount": 1})).await;
    assert_eq!(fixture.violated(), ["I20"]);
}

#[tokio::test(start_paused = true)]
async fn i20_a_success_that_the_policy_does_not_make_one() {
    for (operator, expected) in [("All", &["I20"][..]), ("Any", &[])] {
        let fixture = with_policy(json!({"successPolicy": {"operator": operator}})).await;
        fixture.create("job-worker-0").await;
        fixture.create("job-worker-1").await;
        fixture.succeed("job-worker-0").await;
        fixture.set_condition("Succeeded").await;
        assert_eq!(fixture.violated(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn i2_a_child_of_a_job_that_is_left_alone() {
    let fixture = with_policy(json!({"managedBy": "kueue.x-k8s.io/multikueue"})).await;
    fixture.create("job-worker-0").await;
    assert_eq!(fixture.violated(), ["I2"]);
}

#[tokio::test(start_paused = true)]
async fn i25_a_restart_for_a_pod_that_exists() {
    for (pod, expected) in [("job-worker-0", &["I25"][..]), ("job-worker-1", &[])] {
        let fixture = Fixture::new().await;
        fixture.create("job-worker-0").await;
        let unlabelled = json!({"metadata": {"labels": null}});
        fixture.user("PATCH", "pods", "job-worker-0", unlabelled).await;
        Fixture::wait_past_allowed_staleness().await;
        let failure = json!({"reason": "PodDeleted", "pod": pod});
        fixture
            .status(json!({"restartCount": 1, "failure": failure, "recovery": {"job": 1}}))
            .await;
        assert_eq!(fixture.violated(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn i27_a_stall_of_a_job_that_prints() {
    let failure = json!({"reason": "Stalled", "pod": "job-worker-0"});
    for (seconds, expected) in [(0, &["I27"][..]), (200, &[])] {
        let fixture = with_policy(json!({"progress": {"stalledAfterSeconds": 15}})).await;
        fixture.create("job-worker-0").await;
        fixture.run("job-worker-0").await;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        fixture
            .status(json!({"restartCount": 1, "failure": failure, "recovery": {"job": 1}}))
            .await;
        assert_eq!(fixture.violated(), expected, "{seconds}");
    }
}
