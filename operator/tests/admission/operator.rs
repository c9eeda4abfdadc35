//! The operator in the test's own process.

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use serde_json::Value;
use tokio::task::JoinHandle;
use training_job::{Operator, Options};
use training_job_jax::JAXJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_testing::cluster::{ControlPlane, wait};
use training_job_xgboost::XGBoostJob;

/// Runs it for all kinds in one namespace, until the handle is aborted.
pub(crate) fn start(cluster: &ControlPlane, namespace: &str) -> JoinHandle<()> {
    let options = Options {
        namespace: Some(namespace.to_owned()),
        ..Options::default()
    };
    let operator = Operator::new(cluster.client(), options)
        .manage::<MXJob>()
        .manage::<TFJob>()
        .manage::<XGBoostJob>()
        .manage::<PyTorchJob>()
        .manage::<JAXJob>()
        .manage::<PaddleJob>();
    tokio::spawn(operator.run())
}

/// The jobs of a kind, read as they are.
pub(crate) fn jobs(cluster: &ControlPlane, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let plural = format!("{}s", kind.to_lowercase());
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("kubeflow.org", "v1", kind), &plural);
    Api::namespaced_with(cluster.client(), namespace, &resource)
}

/// The condition of this type, if it is true.
pub(crate) fn condition<'a>(job: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let conditions = job.data["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|c| c["type"] == type_ && c["status"] == "True")
}

/// What the operator thinks of a job: nothing if it makes its pods, else its message, line by line.
pub(crate) async fn verdict(api: &Api<DynamicObject>, name: &str) -> Vec<String> {
    let seen = |job: Option<&DynamicObject>| {
        job.is_some_and(|job| condition(job, "Created").is_some() || condition(job, "Failed").is_some())
    };
    let job = wait(api.clone(), name, seen).await.unwrap();
    let Some(failed) = condition(&job, "Failed") else {
        return Vec::new();
    };
    let message = failed["message"].as_str().unwrap();
    let (_, problems) = message.split_once(" failed validation: ").unwrap();
    problems.lines().map(str::to_owned).collect()
}

/// The events about a job, as `reason: message`.
pub(crate) async fn events(cluster: &ControlPlane, namespace: &str, job: &str) -> Vec<String> {
    let api: Api<Event> = Api::namespaced(cluster.client(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={job}"));
    let events = api.list(&about).await.unwrap();
    events
        .iter()
        .map(|e| {
            format!(
                "{}: {}",
                e.reason.as_deref().unwrap_or_default(),
                e.message.as_deref().unwrap_or_default()
            )
        })
        .collect()
}
