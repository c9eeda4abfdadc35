//! The rules of `validate` for pods are those of the API server.

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use training_job::validate::validate;
use training_job::{Replica, Settings, render};
use training_job_pytorch::PyTorchJob;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::pod_rules::{self, PodRule};

/// Returns a field without the positions and keys in it, because the API server leaves some of them out.
fn bare(field: &str) -> String {
    let outside = |part: &str| part.split_once(']').map_or(part, |(_, rest)| rest).to_owned();
    field.split('[').map(outside).collect()
}

/// Sends a pod of the job to the API server, which stores nothing. Returns the difference to the row.
async fn compare(pods: &Api<Pod>, row: PodRule) -> Option<String> {
    let job: PyTorchJob = serde_json::from_value(row.job).unwrap();
    let valid = match validate(&job, &Settings::default()) {
        Ok(valid) => valid,
        Err(errors) => return Some(format!("{}: has no pod: {errors}", row.name)),
    };
    let role = &valid.topology.roles[0];
    let mut pod = render::pod(&valid, &Replica { role, index: 0 }, 0);
    pod.metadata.namespace = None;
    pod.metadata.owner_references = None;
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let refused = match pods.create(&parameters, &pod).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status),
        Err(error) => panic!("{}: {error}", row.name),
    };
    match (refused, &row.path) {
        (None, None) => None,
        (None, Some(path)) => Some(format!(
            "{}: accepted, but {path} is refused by validate",
            row.name
        )),
        (Some(status), None) => Some(format!("{}: refused: {}", row.name, status.message)),
        (Some(status), Some(_)) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let fields: Vec<_> = causes.map(|cause| bare(&cause.field)).collect();
            let wanted = bare(&row.server);
            // An admission plugin names no field.
            let is_same = fields.is_empty()
                || fields
                    .iter()
                    .any(|field| field.starts_with(&wanted) || wanted.starts_with(field));
            (!is_same).then(|| format!("{}: at {wanted} of {fields:?}: {}", row.name, status.message))
        }
    }
}

#[tokio::test]
async fn the_api_server_refuses_the_pods_that_validate_refuses() {
    let cluster = ControlPlane::shared().await;
    let namespace = cluster.namespace("pod-rules").await;
    let pods = Api::namespaced(cluster.client(), &namespace);
    let compared = stream::iter(pod_rules::all()).map(|row| compare(&pods, row));
    let wrong: Vec<_> = compared
        .buffered(8)
        .filter_map(async |wrong| wrong)
        .collect()
        .await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
