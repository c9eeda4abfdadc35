//! Kueue's webhook and its effect on jobs.

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use training_operator_testing::{corpus, same};

use super::process::Queues;
use super::queue::QUEUE;

const KINDS: [&str; 5] = ["TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob"];

/// Returns all valid jobs of the corpus of the kinds that Kueue supports, unchanged.
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

/// Creates a job in a dry run, with or without the label of a queue. Returns the result.
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

/// The webhook suspends the jobs and changes nothing else.
#[tokio::test]
async fn every_good_job_of_the_corpus_passes_the_webhook_and_is_the_same_job() {
    let queues = Queues::shared().await;
    let namespace = queues.plane.namespace("webhook").await;
    let jobs = jobs();
    assert!(jobs.len() > 80, "{} jobs", jobs.len());
    let mut wrong = Vec::new();
    for (file, job) in &jobs {
        let mut alone = stored(queues, &namespace, job, false)
            .await
            .unwrap_or_else(|e| panic!("{file}: {e}"));
        match stored(queues, &namespace, job, true).await {
            Ok(queued) => {
                alone["runPolicy"]["suspend"] = true.into();
                let mut found = Vec::new();
                same::differences("", &alone, &queued, &mut found);
                wrong.extend(
                    found
                        .into_iter()
                        .map(|difference| format!("{file}: {difference}")),
                );
            }
            Err(refusal) => wrong.push(format!("{file}: {refusal}")),
        }
    }
    assert!(wrong.is_empty(), "of {} jobs:\n{}", jobs.len(), wrong.join("\n"));
}
