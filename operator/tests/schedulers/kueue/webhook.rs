//! What Kueue's webhook makes of jobs.

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::process::Queues;
use super::queue::QUEUE;
use crate::corpus;

const KINDS: [&str; 5] = ["MXJob", "TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob"];

/// All good jobs of the corpus of the kinds that Kueue knows, as they are.
fn jobs() -> Vec<(String, Value)> {
    let good = corpus::ALL.iter().filter(|manifest| manifest.offline.is_empty());
    let documents = good.flat_map(|manifest| {
        let all: Vec<Value> = serde_saphyr::from_multiple(&manifest.text).unwrap();
        all.into_iter().map(|document| (manifest.file.clone(), document))
    });
    let known = |job: &Value| {
        let group = job["apiVersion"].as_str().unwrap_or_default();
        group.starts_with("kubeflow.org/") && KINDS.iter().any(|kind| job["kind"] == *kind)
    };
    documents.filter(|(_, job)| known(job)).collect()
}

/// A dry run, with or without the label by which the job goes to a queue.
async fn stored(queues: &Queues, namespace: &str, job: &Value, queued: bool) -> Result<Value, String> {
    let mut job = job.clone();
    job["metadata"]["namespace"] = namespace.into();
    if queued {
        job["metadata"]["labels"][QUEUE] = "queue".into();
    }
    let (group, version) = job["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = GroupVersionKind::gvk(group, version, job["kind"].as_str().unwrap());
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(queues.plane.client(), namespace, &resource);
    let object: DynamicObject = serde_json::from_value(job).unwrap();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let stored = api.create(&dry, &object).await.map_err(|e| e.to_string())?;
    Ok(stored.data["spec"].clone())
}

/// What Kueue's types write of nothing: containers without resources, and a status and dates that are null.
fn is_of_nothing(key: &str, value: &Value) -> bool {
    matches!(
        key,
        "resources" | "creationTimestamp" | "metadata" | "status" | "strategy"
    ) && (value.is_null() || *value == json!({}))
}

/// Where `queued` differs from `alone` in more than what is of nothing. The suspension is another matter.
fn differences(at: &str, alone: &Value, queued: &Value, found: &mut Vec<String>) {
    match (alone, queued) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (x, y) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                let added = !a.contains_key(key) && is_of_nothing(key, y);
                if !added && (at, &**key) != (".runPolicy", "suspend") {
                    differences(&format!("{at}.{key}"), x, y, found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}[{n}]"), a, b, found);
            }
        }
        // A quantity of a whole number may be a number.
        (Value::Number(a), Value::String(b)) if a.to_string() == *b => {}
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{at}: {a} became {b}")),
    }
}

/// They are suspended, and otherwise the same jobs.
#[tokio::test]
async fn every_good_job_of_the_corpus_passes_the_webhook_and_is_the_same_job() {
    let queues = Queues::shared().await;
    let namespace = queues.plane.namespace("webhook").await;
    let jobs = jobs();
    assert!(jobs.len() > 80, "{} jobs", jobs.len());
    let mut wrong = Vec::new();
    for (file, job) in &jobs {
        let alone = stored(queues, &namespace, job, false).await;
        let alone = alone.unwrap_or_else(|e| panic!("{file}: {e}"));
        let queued = match stored(queues, &namespace, job, true).await {
            Ok(queued) => queued,
            Err(refusal) => {
                wrong.push(format!("{file}: {refusal}"));
                continue;
            }
        };
        if queued["runPolicy"]["suspend"] != true {
            wrong.push(format!("{file}: is not suspended"));
        }
        let mut found = Vec::new();
        differences("", &alone, &queued, &mut found);
        wrong.extend(
            found
                .into_iter()
                .map(|difference| format!("{file}: {difference}")),
        );
    }
    assert!(wrong.is_empty(), "of {} jobs:\n{}", jobs.len(), wrong.join("\n"));
}
