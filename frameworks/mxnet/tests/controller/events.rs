//! What an event has in it, for who reads it.

use serde_json::{Value, json};
use training_job_simulation::faults::PodFate::Runs;
use training_job_simulation::simulation::{Simulation, train};

#[tokio::test(start_paused = true)]
async fn an_event_names_the_job_who_tells_of_it_and_when() {
    let world = Simulation::new(|_, _| Runs);
    world.create(train("job", &[("Worker", 2)])).await;
    let created = world.stored("mxjobs", "job")["metadata"].clone();
    world.advance(10).await;
    let events = world.cluster.list("events", None);
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
            "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "job", "namespace": "default",
            "uid": created["uid"], "resourceVersion": created["resourceVersion"],
        },
        "type": "Normal", "reason": "SuccessfulCreatePod",
        "message": "Created pods: job-worker-0, job-worker-1",
        "source": {"component": "mxjob-controller"},
        "reportingComponent": "mxjob-controller", "reportingInstance": "",
        "firstTimestamp": "2030-01-01T00:00:00Z", "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 1, "eventTime": null,
    });
    assert_eq!(event, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_a_warning() {
    let world = Simulation::new(|_, _| Runs);
    let mut job = train("job", &[("Worker", 1)]);
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = json!([]);
    world.create(job).await;
    world.advance(10).await;
    let events = world.cluster.list("events", None);
    let types: Vec<_> = events.iter().map(|e| e.value()["type"].clone()).collect();
    assert_eq!(types, ["Warning"]);
}
