//! The fields of an event.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::Runs;

use crate::toys::{simulate, toy_job};

#[tokio::test(start_paused = true)]
async fn an_event_has_its_job_source_and_time() {
    let sim = simulate(|_, _| Runs);
    sim.create(toy_job("job", &[("Worker", 2)])).await;
    let created = sim.stored("toyjobs", "job")["metadata"].clone();
    sim.advance(10).await;
    let events = sim.cluster.list("events", None);
    let of = |reason: &str| -> Value {
        let found = events.iter().find(|e| e.value()["reason"] == reason);
        found.unwrap().value().clone()
    };
    let mut event = of("SuccessfulCreatePod");
    let metadata = event["metadata"].take();
    let name = metadata["name"].as_str().unwrap();
    assert!(name.starts_with("job."), "{name}");
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

#[tokio::test(start_paused = true)]
async fn problems_are_warning_events() {
    let sim = simulate(|_, _| Runs);
    let mut job = toy_job("job", &[("Worker", 1)]);
    job["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"] = json!([]);
    sim.create(job).await;
    sim.advance(10).await;
    let events = sim.cluster.list("events", None);
    let types: Vec<_> = events.iter().map(|e| e.value()["type"].clone()).collect();
    assert_eq!(types, ["Warning"]);
}
