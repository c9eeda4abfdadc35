//! A job on which a hook of its kind panics.

use kube_memory::Description;
use serde_json::{Value, json};
use training_job_controller::{Metrics, Operator};
use training_job_mxnet::MXJob;
use training_job_simulation::faults::PodFate::Succeeds;
use training_job_simulation::simulation::{SMALL, Simulation, train};
use training_job_testbed::{PANICS, ToyJob};

use crate::harness::{
    assert_ends, assert_within, edit, make, metric, remove, settle_and_check, start_with_metrics,
};

/// Returns a simulation of MXJobs and toy jobs, and the operator's metrics.
fn simulation() -> (Simulation, Metrics) {
    let mut sim = Simulation::without_operator(|_, _| Succeeds(20));
    let description = Description::new("kubeflow.org", "v1", "ToyJob", "toyjobs");
    sim.cluster.install(description.with_status());
    // With a concurrency of one, a job that keeps its slot would block the others.
    let manage = |operator: Operator| operator.manage::<ToyJob>().manage::<MXJob>();
    let metrics = start_with_metrics(&mut sim, 1, manage);
    (sim, metrics)
}

fn poison(hook: &str) -> Value {
    let template = json!({"spec": {"containers": [{"name": "toy", "image": "toy"}]}});
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob",
        "metadata": {"name": "poison", "namespace": "default", "annotations": {PANICS: hook}},
        "spec": {"replicaSpecs": {"Worker": {"replicas": 2, "template": template}}},
    })
}

fn toy(sim: &Simulation) -> Value {
    let jobs = sim.cluster.list("toyjobs", None);
    jobs[0].value().clone()
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_panics_stops_no_other_and_is_tried_ever_more_rarely() {
    let (mut sim, metrics) = simulation();
    make(&sim, "toyjobs", poison("outcome")).await;
    sim.create(train("job", &SMALL)).await;
    sim.advance(60).await;
    assert_ends(&sim, "job", "Succeeded", "");
    sim.advance(3_540).await;
    let tries = metric(&metrics, &["_count{", "toy", "error"]);
    // The backoff doubles from half a second to five minutes.
    assert_within(tries, 10.0..=25.0, "tries in an hour");
    assert!(remove(&sim, "toyjobs", "poison").await);
    settle_and_check(&mut sim).await;
}

/// The event and the condition name the hook and the kind. They go when the hook works, as after an upgrade.
#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_is_named_until_it_works() {
    for hook in ["env", "outcome"] {
        let (mut sim, _) = simulation();
        make(&sim, "toyjobs", poison(hook)).await;
        sim.advance(60).await;
        let expected = format!(
            "ToyJob poison does not change, because the hook {hook} of ToyJob panicked: no {}; \
             report it to the authors of the kind",
            if hook == "env" { "environment" } else { hook }
        );
        let condition = &toy(&sim)["status"]["conditions"][0];
        assert_eq!(condition["type"], "HookPanicked", "{hook}");
        assert_eq!(condition["message"], *expected);
        let events = sim.cluster.list("events", None);
        let named = events
            .iter()
            .filter(|event| event["reason"] == "ToyJobHookPanicked");
        let notes: Vec<_> = named.map(|event| event["message"].clone()).collect();
        assert_eq!(notes, [json!(expected)], "{hook}");
        let change = json!({"metadata": {"annotations": {PANICS: null}}});
        edit(&sim, "toyjobs", "poison", change).await;
        settle_and_check(&mut sim).await;
        let status = &toy(&sim)["status"];
        let types = status["conditions"].as_array().unwrap().iter();
        let types: Vec<_> = types
            .map(|condition| condition["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["Created", "Running", "Succeeded"], "{hook}");
    }
}
