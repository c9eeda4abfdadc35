//! Every valid job of the corpus.

use serde_json::Value;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::corpus;

use super::api;

/// The check is strict: unknown fields are errors.
#[tokio::test]
async fn the_api_server_accepts_valid_jobs_in_every_version() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("good").await;
    let good: Vec<_> = corpus::ALL.iter().filter(|m| m.offline.is_empty()).collect();
    assert!(good.len() > 90, "{} good manifests", good.len());
    let as_they_are: Vec<_> = good
        .iter()
        .map(|m| m.text.as_str())
        .filter(|text| text.contains("kubeflow.org/") && !text.contains("kind: Experiment"))
        // The namespaces of these files do not exist.
        .filter(|text| !text.contains("namespace:"))
        .collect();
    let mut told = api::create(cluster, &namespace, &as_they_are.join("\n---\n"), &DRY).await;
    for version in ["v1", "v1beta1", "v1alpha2"] {
        let jobs = good
            .iter()
            .flat_map(|m| serde_saphyr::from_multiple::<Value>(&m.text).unwrap());
        let texts: Vec<_> = jobs
            // Only v1 requires a job mode.
            .filter(|job| job["kind"] == "MXJob" && (version != "v1" || job["spec"].get("jobMode").is_some()))
            .map(|mut job| {
                job["metadata"].as_object_mut().unwrap().remove("namespace");
                job["apiVersion"] = format!("kubeflow.org/{version}").into();
                job.to_string()
            })
            .collect();
        assert!(texts.len() > 70, "{} jobs in {version}", texts.len());
        told.extend(api::create(cluster, &namespace, &texts.join("\n---\n"), &DRY).await);
    }
    assert!(told.is_empty(), "{told:#?}");
}

/// kubectl is strict by default: unknown fields are errors.
const DRY: [&str; 1] = ["--dry-run=server"];
