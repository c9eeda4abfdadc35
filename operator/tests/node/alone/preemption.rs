//! Preemption by the scheduler.

use serde_json::{Value, json};

use crate::example::spread;
use crate::job::{TRAINS, each_pod, script, small};
use crate::stage::Stage;
use crate::times;

/// Returns a small job of this priority, whose pods request this much of a CPU each.
fn job(name: &str, class: &str, cpu: &str) -> Value {
    let mut job = spread(small(name));
    each_pod(&mut job, |pod| {
        pod["priorityClassName"] = json!(class);
        pod["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    });
    job
}

#[tokio::test]
async fn a_preempted_job_trains_again_after_the_other() {
    let stage = Stage::new("preempted").await;
    for (name, value) in [("node-test-low", -10), ("node-test-high", 10)] {
        stage
            .apply(&json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            }))
            .await;
    }
    // Four pods fill both nodes of two cores, and two of the others fit nowhere beside them.
    let low = job("low", "node-test-low", "800m");
    let mut high = job("high", "node-test-high", "700m");
    high["spec"]["successPolicy"] = json!("AllWorkers");
    script(&mut high, "Worker", "echo trains; sleep 5");
    stage.create(&low).await;
    let (before, _) = stage.prints("low-worker-0", TRAINS, None).await;
    let from = stage.create(&high).await;
    let (_, trains) = stage.prints("high-worker-0", TRAINS, None).await;
    times::record(
        "job of high priority: created -> trains in place of another",
        from,
        trains,
    );
    let status = stage
        .until(&low, |status| status["failure"]["reason"] != Value::Null)
        .await;
    assert_eq!(status["failure"]["reason"], "PreemptionByScheduler", "{status:#}");
    assert_eq!(status["restartCount"], 1, "{status:#}");
    stage.succeeds(&high).await;
    stage.prints("low-worker-0", TRAINS, Some(&before)).await;
    stage.condition(&low, "Running").await;
    stage
        .kubectl(&["delete", "priorityclass", "node-test-low", "node-test-high"])
        .await;
}
