//! Objects that were stored before the API server had the rules, or that bypassed them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, wait, wait_for_all};
use training_operator_testing::program::root;

use super::operator;

/// Returns a job with one worker. `patch` is merged into its spec.
fn job(name: &str, patch: Value) -> Value {
    let container = json!({"name": "mxnet", "image": "i"});
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {
            "Worker": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
        }},
    });
    merge(&mut job["spec"], patch);
    job
}

fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}

/// Returns invalid jobs, each with an edit of its spec that fixes it, if there is one.
fn bad() -> Vec<(Value, Option<Value>)> {
    let worker = |patch: Value| json!({"mxReplicaSpecs": {"Worker": patch}});
    let fixed = |bad: Value, good: Value| (worker(bad), Some(worker(good)));
    let one = json!([{"name": "mxnet", "image": "i"}]);
    let containers = |list: Value| json!({"template": {"spec": {"containers": list}}});
    let cases = [
        ("negative", fixed(json!({"replicas": -1}), json!({"replicas": 1}))),
        (
            "too-many",
            fixed(json!({"replicas": 2_000_000}), json!({"replicas": 1})),
        ),
        (
            "no-container",
            fixed(containers(json!([])), containers(one.clone())),
        ),
        (
            "other-container",
            fixed(
                containers(json!([{"name": "main", "image": "i"}])),
                containers(one.clone()),
            ),
        ),
        (
            "no-image",
            fixed(containers(json!([{"name": "mxnet"}])), containers(one.clone())),
        ),
        (
            "no-template",
            fixed(json!({"template": null}), containers(one.clone())),
        ),
        (
            "restart-policy",
            fixed(
                json!({"restartPolicy": "Sometimes"}),
                json!({"restartPolicy": "Never"}),
            ),
        ),
        (
            "null-role",
            (worker(Value::Null), Some(worker(containers(one.clone())))),
        ),
        (
            "unknown-role",
            (
                json!({"mxReplicaSpecs": {"Chief": {"replicas": 1}}}),
                Some(json!({"mxReplicaSpecs": {"Chief": null}})),
            ),
        ),
        (
            "two-schedulers",
            (
                json!({"mxReplicaSpecs": {"Scheduler": {"replicas": 2, "template": {"spec": {"containers": one}}}}}),
                Some(json!({"mxReplicaSpecs": {"Scheduler": {"replicas": 1}}})),
            ),
        ),
        (
            "job-mode",
            (json!({"jobMode": "Train"}), Some(json!({"jobMode": "MXTrain"}))),
        ),
        (
            "no-job-mode-nor-roles",
            (json!({"jobMode": null, "mxReplicaSpecs": null}), None),
        ),
        (
            "limits",
            (
                json!({"runPolicy": {"backoffLimit": -1, "cleanPodPolicy": "Some"}, "activeDeadlineSeconds": -5}),
                Some(
                    json!({"runPolicy": {"backoffLimit": 1, "cleanPodPolicy": "All"}, "activeDeadlineSeconds": null}),
                ),
            ),
        ),
        (
            "text-for-replicas",
            fixed(json!({"replicas": "two"}), json!({"replicas": 2})),
        ),
        (
            "text-for-template",
            fixed(
                json!({"template": "none"}),
                json!({"template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}}),
            ),
        ),
        (
            "number-for-env",
            fixed(
                containers(json!([{"name": "mxnet", "image": "i", "env": [{"name": "A", "value": 1}]}])),
                containers(json!([{"name": "mxnet", "image": "i", "env": [{"name": "A", "value": "1"}]}])),
            ),
        ),
        ("1-digit-first", (json!({}), None)),
        ("with.dot", (json!({}), None)),
    ];
    let mut bad: Vec<_> = cases
        .into_iter()
        .map(|(name, (patch, edit))| (job(name, patch), edit))
        .collect();
    let long = format!("long-{}", "x".repeat(49));
    let edit = json!({"mxReplicaSpecs": {"Worker": {"replicas": 1}}});
    bad.push((job(&long, worker(json!({"replicas": 200}))), Some(edit)));
    let mut no_spec = job("no-spec", json!({}));
    no_spec.as_object_mut().unwrap().remove("spec");
    bad.push((no_spec, None));
    bad
}

/// Returns the definition of MXJobs without a schema.
fn loose() -> String {
    let file = root().join("crds/kubeflow.org_mxjobs.yaml");
    let mut definition: Value = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
        version["schema"]["openAPIV3Schema"] = schema;
    }
    definition.to_string()
}

#[tokio::test]
async fn each_invalid_job_gets_one_condition_and_one_event_and_runs_when_corrected() {
    let cluster = ControlPlane::start(Options::default()).await;
    let apply = ["apply", "--server-side", "-f", "-"];
    cluster.kubectl_with_input(&apply, &loose()).await.success();
    cluster.served("mxjobs.kubeflow.org").await;
    let namespace = cluster.namespace("stored").await;
    let jobs = operator::jobs(&cluster, &namespace, "MXJob");
    let bad = bad();
    for (job, _) in &bad {
        cluster.create(&namespace, job).await;
    }
    cluster.install_crds().await;
    let running = operator::start(&cluster, &namespace);
    // A valid job runs in the same namespace.
    let good = job("good", json!({}));
    cluster.create(&namespace, &good).await;
    assert_eq!(operator::verdict(&jobs, "good").await, [""; 0]);

    let mut table = String::new();
    for (job, _) in &bad {
        let name = job["metadata"]["name"].as_str().unwrap();
        table += &told(&cluster, &jobs, &namespace, name).await;
    }
    // Nothing more is written for them, however much time passes and whatever else happens.
    let before = versions(&jobs).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(versions(&jobs).await, before);
    for (job, _) in &bad {
        let name = job["metadata"]["name"].as_str().unwrap();
        let events = operator::events(&cluster, &namespace, name).await;
        assert_eq!(events.len(), 1, "{name}: {events:#?}");
    }

    for (job, edit) in &bad {
        let name = job["metadata"]["name"].as_str().unwrap();
        let Some(edit) = edit else { continue };
        let patch = Patch::Merge(json!({"spec": edit}));
        jobs.patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap_or_else(|e| panic!("{name} cannot be mended: {e}"));
        let runs = |job: Option<&DynamicObject>| {
            job.is_some_and(|job| {
                operator::condition(job, "Created").is_some() && operator::condition(job, "Failed").is_none()
            })
        };
        wait(jobs.clone(), name, runs).await;
        let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
        let label = format!("training.kubeflow.org/job-name={name}");
        wait_for_all(pods, &label, |pods| !pods.is_empty()).await;
    }
    assert!(!running.is_finished(), "the operator ended");
    running.abort();
    insta::assert_snapshot!(table);
}

/// Returns the operator's report about a job: its status, or only an event if the status cannot be written.
async fn told(cluster: &ControlPlane, jobs: &Api<DynamicObject>, namespace: &str, name: &str) -> String {
    let mut text = format!("{name}\n");
    let events = loop {
        let events = operator::events(cluster, namespace, name).await;
        if !events.is_empty() {
            break events;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let job = jobs.get(name).await.unwrap();
    let conditions = job.data["status"]["conditions"].as_array().cloned();
    let conditions: Vec<_> = conditions.unwrap_or_default();
    let types: Vec<_> = conditions.iter().filter_map(|c| c["type"].as_str()).collect();
    text += &format!("  conditions: {}\n", types.join(" "));
    for event in events {
        let (reason, message) = event.split_once(": ").unwrap();
        text += &format!("  {reason}\n");
        for line in message.lines() {
            text += &format!("    {line}\n");
        }
    }
    text
}

async fn versions(jobs: &Api<DynamicObject>) -> Vec<(String, Option<String>)> {
    let jobs = jobs.list(&ListParams::default()).await.unwrap();
    jobs.iter()
        .filter(|job| job.name_any() != "good")
        .map(|job| (job.name_any(), job.resource_version()))
        .collect()
}
