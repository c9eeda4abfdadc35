//! The number of calls that a job without faults costs, and its events.

use serde_json::{Value, json};
use training_job_simulation::call::Call;
use training_job_simulation::faults::PodFate::{NodeLost, Runs, Succeeds};
use training_job_simulation::simulation::with_spec;

use crate::harness::{assert_ends, assert_within, toy_job, toys};

#[tokio::test(start_paused = true)]
async fn a_job_of_n_replicas_costs_2n_creates_and_a_few_calls() {
    for workers in [1, 10, 100] {
        let sim = toys(|_, _| Succeeds(10));
        let roles = [("Scheduler", 1), ("Server", 1), ("Worker", workers)];
        sim.create(toy_job("job", &roles)).await;
        sim.advance(60).await;
        assert_ends(&sim, "job", "Succeeded", workers);
        let calls = sim.network.take_calls();
        let count = |wanted: &dyn Fn(&Call) -> bool| calls.iter().filter(|c| wanted(c)).count();
        let replicas = usize::try_from(workers).unwrap() + 2;
        let is_child = |call: &Call| matches!(&*call.resource, "pods" | "services");
        assert_eq!(count(&|c| c.writes() && is_child(c)), 2 * replicas, "{workers}");
        // Created (written with Running if all run within a second), Running, Succeeded.
        let statuses = count(&|c| c.resource == "toyjobs/status");
        assert_within(statuses, 2..=3, format_args!("{workers}: statuses"));
        assert_eq!(count(&|c| c.verb == "get"), 0, "{workers}");
        let told = [
            "SuccessfulCreateService",
            "SuccessfulCreatePod",
            "ToyJobSucceeded",
        ];
        assert_eq!(sim.events(), told, "{workers}");
        // A host name exists before its host.
        let order = calls.iter().filter(|c| c.verb == "create" && is_child(c));
        let order: Vec<_> = order.map(|call| &*call.resource).collect();
        assert!(
            order.is_sorted_by_key(|resource| *resource == "pods"),
            "{order:?}"
        );
        sim.assert_no_violations();
    }
}

#[tokio::test(start_paused = true)]
async fn terminating_pods_are_not_deleted_again() {
    let sim = toys(|_, _| NodeLost(100_000, 60));
    // With a common restart, the other pods would already be terminating.
    let alone = json!({"runPolicy": {"restartScope": "Replica"}});
    let job = toy_job("job", &[("Scheduler", 1), ("Worker", 3)]);
    sim.create(with_spec(job, alone)).await;
    sim.advance(10).await;
    sim.delete_pod("job-worker-0").await;
    sim.advance(1).await;
    sim.network.take_calls();
    let suspend = json!({"spec": {"runPolicy": {"suspend": true}}});
    sim.edit("job", suspend).await;
    sim.advance(10).await;
    assert_eq!(sim.network.count("delete", "pods"), 3);
    assert_eq!(sim.pods_now().iter().filter(|p| p.ends_with('!')).count(), 4);
    sim.assert_no_violations();
}

#[tokio::test(start_paused = true)]
async fn an_event_has_its_job_source_and_time() {
    let sim = toys(|_, _| Runs);
    sim.create(toy_job("job", &[("Worker", 2)])).await;
    let created = sim.stored("toyjobs", "job")["metadata"].clone();
    sim.advance(10).await;
    let events = sim.cluster.list("events", None);
    let event = events
        .iter()
        .find(|e| e.value()["reason"] == "SuccessfulCreatePod");
    let mut event: Value = event.unwrap().value().clone();
    let metadata = event["metadata"].take();
    assert!(
        metadata["name"].as_str().unwrap().starts_with("job."),
        "{metadata}"
    );
    assert_eq!(metadata["namespace"], "default");
    let expected = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": null,
        "involvedObject": {
            "apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "name": "job", "namespace": "default",
            "uid": created["uid"], "resourceVersion": created["resourceVersion"],
        },
        "type": "Normal", "reason": "SuccessfulCreatePod",
        "message": "Created pods: job-worker-0, job-worker-1",
        "source": {"component": "toyjob-controller"},
        "reportingComponent": "toyjob-controller", "reportingInstance": "",
        "firstTimestamp": "2030-01-01T00:00:00Z", "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 1, "eventTime": null,
    });
    assert_eq!(event, expected);
}
