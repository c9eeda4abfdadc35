//! Jobs that have passed through the Go operator's types, as webhooks and clients in Go send them.

use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use training_job_testbed::cluster::{Background, ControlPlane, Options, Program, WAIT_TIMEOUT, repository};
use training_operator_testing::{corpus, same};

/// The kinds that have a Go type.
pub(crate) const KINDS: [(&str, &str); 6] = [
    ("MPIJob", "mpijobs"),
    ("MXJob", "mxjobs"),
    ("PaddleJob", "paddlejobs"),
    ("PyTorchJob", "pytorchjobs"),
    ("TFJob", "tfjobs"),
    ("XGBoostJob", "xgboostjobs"),
];

/// Starts a real webhook. The API server drops nulls before it calls the webhook, but keeps nulls that the webhook
/// adds.
pub(crate) async fn webhook(cluster: &ControlPlane) -> Background {
    let build = repository().join("tests/go-operator/types/build.sh");
    assert!(Command::new(build).status().unwrap().success());
    // The certificate of the API server is valid for this address, and its file contains the CA as well.
    let certificate = cluster.directory().join("certificates/apiserver.crt");
    let files = [certificate.clone(), certificate.with_extension("key")];
    let program = Program::new(repository().join("target/go-operator/types")).args(files);
    let webhook = cluster.spawn(program);
    let line = webhook.wait_for_line("listening at ").await;
    let port = line.rsplit(' ').next().unwrap();
    let configuration = json!({
        "metadata": {"name": "go-types"},
        "webhooks": [{
            "name": "types.go.example.com",
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}/"),
                "caBundle": STANDARD.encode(std::fs::read(&certificate).unwrap()),
            },
            "rules": [{
                "apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": KINDS.map(|(_, plural)| plural),
            }],
            "objectSelector": {"matchExpressions": [{"key": "through", "operator": "In", "values": ["go", "client"]}]},
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
        }],
    });
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(configuration).unwrap();
    let api: Api<MutatingWebhookConfiguration> = Api::all(cluster.client());
    api.create(&PostParams::default(), &configuration).await.unwrap();
    webhook
}

/// Returns the object that would be stored, and true if the webhook was called.
pub(crate) async fn dry(cluster: &ControlPlane, job: &Value, through: &str) -> Result<(Value, bool), String> {
    let mut job = job.clone();
    let metadata = job["metadata"].as_object_mut().unwrap();
    metadata.remove("namespace");
    job["metadata"]["labels"]["through"] = through.into();
    let kind = GroupVersionKind::gvk("kubeflow.org", "v1", job["kind"].as_str().unwrap());
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let object: DynamicObject = serde_json::from_value(job).unwrap();
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let stored = api
        .create(&parameters, &object)
        .await
        .map_err(|e| e.to_string())?;
    let annotations = stored.metadata.annotations.unwrap_or_default();
    Ok((stored.data["spec"].clone(), annotations.contains_key("go-types")))
}

/// Go writes null for unset values, such as the creation time of a template, and zero values.
#[tokio::test]
async fn every_good_job_is_valid_and_the_same_after_a_go_webhook() {
    let cluster = ControlPlane::start(Options::default()).await;
    cluster.install_crds().await;
    let _webhook = webhook(&cluster).await;
    let good = corpus::ALL.iter().filter(|manifest| manifest.offline.is_empty());
    let jobs = good.flat_map(|manifest| {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&manifest.text).unwrap();
        documents.into_iter().map(|job| (&manifest.file, job))
    });
    let is_known = |job: &Value| KINDS.iter().any(|(kind, _)| job["kind"] == *kind);
    let jobs: Vec<_> = jobs
        .filter(|(_, job)| job["apiVersion"] == "kubeflow.org/v1" && is_known(job))
        .collect();
    assert!(jobs.len() > 100, "{} jobs", jobs.len());
    until_asked(&cluster, &jobs[0].1).await;
    let mut wrong = Vec::new();
    for (file, job) in &jobs {
        let (alone, _) = dry(&cluster, job, "none")
            .await
            .unwrap_or_else(|e| panic!("{file}: {e}"));
        match dry(&cluster, job, "go").await {
            Ok((through, asked)) => {
                assert!(asked, "{file}");
                let mut found = Vec::new();
                same::differences("", &alone, &through, &mut found);
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

/// The API server calls webhooks some milliseconds after they were stored. There is no event to wait for.
pub(crate) async fn until_asked(cluster: &ControlPlane, job: &Value) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !matches!(dry(cluster, job, "go").await, Ok((_, true)) | Err(_)) {
        assert!(Instant::now() < deadline, "the webhook is not asked");
        sleep(Duration::from_millis(20)).await;
    }
}
