//! The invariants of jobs whose pods a gang scheduler binds.

use kube_memory::Description;
use serde_json::{Value, json};
use training_job::GangScheduler;

use training_job_simulation::invariants::at_rest::SettledCluster;

use crate::fixture::{Fixture, condition};

/// Creates a cluster with a job of two workers and a group in this phase.
async fn with_group(phase: &str) -> Fixture {
    let fixture = Fixture::new().await;
    let kind = GangScheduler::Volcano.pod_group();
    let definition = Description::new(kind.group, kind.version, kind.kind, kind.plural);
    fixture.cluster.install(definition);
    let mut group = fixture.child("PodGroup", "job");
    group["apiVersion"] = json!("scheduling.volcano.sh/v1beta1");
    group["spec"] = json!({"minMember": 2});
    fixture.post(group).await;
    set_phase(&fixture, phase).await;
    fixture
}

async fn set_phase(fixture: &Fixture, phase: &str) {
    let patch = json!({"status": {"phase": phase}});
    fixture.user("PATCH", "podgroups", "job", patch).await;
}

fn pod(fixture: &Fixture, name: &str) -> Value {
    let mut pod = fixture.pod(name);
    pod["spec"]["schedulerName"] = json!("volcano");
    pod
}

async fn create(fixture: &Fixture, name: &str) {
    fixture.post(pod(fixture, name)).await;
}

#[tokio::test(start_paused = true)]
async fn i22_a_pod_before_its_group_is_let_in() {
    for (phase, expected) in [
        ("", &["I22"][..]),
        ("Pending", &["I22"]),
        ("Inqueue", &[]),
        ("Running", &[]),
    ] {
        let fixture = with_group(phase).await;
        create(&fixture, "job-worker-0").await;
        assert_eq!(fixture.violated(), expected, "{phase}");
    }
}

#[tokio::test(start_paused = true)]
async fn i22_a_pod_whose_group_is_no_longer_admitted() {
    let fixture = with_group("Inqueue").await;
    set_phase(&fixture, "Pending").await;
    create(&fixture, "job-worker-0").await;
    assert_eq!(fixture.violated(), [""; 0], "the operator may not know it yet");
    create(&fixture, "job-worker-1").await;
    assert_eq!(fixture.violated(), [""; 0], "it joins a pod that is there");
    for name in ["job-worker-0", "job-worker-1"] {
        fixture.succeed(name).await;
    }
    Fixture::wait_past_allowed_staleness().await;
    fixture.delete("pods", "job-worker-1", Some(0)).await;
    create(&fixture, "job-worker-1").await;
    assert!(fixture.violated().contains(&"I22"), "{:?}", fixture.violated());
}

#[tokio::test(start_paused = true)]
async fn i22_a_pod_of_a_restart_whose_group_is_from_before() {
    let fixture = with_group("Running").await;
    fixture.status(json!({"recovery": {"job": 1}})).await;
    Fixture::wait_past_allowed_staleness().await;
    let mut pod = pod(&fixture, "job-worker-0");
    pod["metadata"]["annotations"] = json!({"training.kubeflow.org/restart-attempt": "1"});
    fixture.post(pod).await;
    assert_eq!(fixture.violated(), ["I22"]);
}

#[tokio::test(start_paused = true)]
async fn i22_a_group_that_goes_before_the_last_pod() {
    for (succeeded, expected) in [(1, &["I22"][..]), (2, &[])] {
        let fixture = with_group("Running").await;
        for name in ["job-worker-0", "job-worker-1"] {
            create(&fixture, name).await;
        }
        for name in ["job-worker-0", "job-worker-1"].iter().take(succeeded) {
            fixture.succeed(name).await;
        }
        fixture.set_condition("Succeeded").await;
        Fixture::wait_past_allowed_staleness().await;
        fixture.delete("podgroups", "job", None).await;
        assert_eq!(fixture.violated(), expected, "{succeeded}");
    }
}

/// Returns the problems of the gang in a settled cluster.
fn at_rest(fixture: &Fixture) -> Vec<String> {
    let settled = SettledCluster::read(&fixture.cluster).with_gangs(Some(GangScheduler::Volcano));
    let problems = settled.problems().into_iter();
    problems
        .filter(|(id, _)| *id == "I22")
        .map(|(_, what)| what)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn i22_a_gang_at_rest() {
    let fixture = with_group("Running").await;
    assert_eq!(
        at_rest(&fixture),
        ["MXJob job: its group asks for 2 pods, and it has 0"]
    );
    create(&fixture, "job-worker-0").await;
    create(&fixture, "job-worker-1").await;
    assert_eq!(at_rest(&fixture), ["MXJob job: \"job-worker-0\" has no place"]);
    for name in ["job-worker-0", "job-worker-1"] {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"kind": "Node", "name": "n"}});
        let path = format!("{name}/binding");
        fixture.user("POST", "pods", &path, binding).await;
    }
    assert_eq!(at_rest(&fixture), [""; 0]);
    fixture.status(json!({"recovery": {"job": 1}})).await;
    assert_eq!(
        at_rest(&fixture),
        ["MXJob job: its group is of an earlier attempt"]
    );
    fixture
        .status(json!({"recovery": null, "conditions": [condition("Succeeded")]}))
        .await;
    assert_eq!(at_rest(&fixture), [""; 0], "its pods run on");
    for name in ["job-worker-0", "job-worker-1"] {
        fixture.succeed(name).await;
    }
    assert_eq!(
        at_rest(&fixture),
        ["MXJob job: its group is left, though no pod runs"]
    );
    fixture.remove("podgroups", "job").await;
    assert_eq!(at_rest(&fixture), [""; 0]);
    let unset = json!({"status": {"conditions": null}});
    fixture.user("PATCH", "mxjobs", "job/status", unset).await;
    assert_eq!(at_rest(&fixture), ["MXJob job: it has no group"]);
}
