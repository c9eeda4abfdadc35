//! Runs the operator in the process of the test.

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use serde_json::Value;
use tokio::task::JoinHandle;
use training_job_controller::{Operator, Options};
use training_job_jax::JAXJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_testbed::cluster::{ControlPlane, wait};
use training_job_xgboost::XGBoostJob;

/// Starts an operator for all kinds in one namespace. It runs until the handle is aborted.
pub(crate) fn start(cluster: &ControlPlane, namespace: &str) -> JoinHandle<()> {
    let mut options = Options::default();
    options.namespace = Some(namespace.to_owned());
    let operator = Operator::new(cluster.client(), options)
        .manage::<MXJob>()
        .manage::<TFJob>()
        .manage::<XGBoostJob>()
        .manage::<PyTorchJob>()
        .manage::<JAXJob>()
        .manage::<PaddleJob>();
    tokio::spawn(operator.run())
}

/// Returns the untyped API for jobs of a kind.
pub(crate) fn jobs(cluster: &ControlPlane, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let plural = format!("{}s", kind.to_lowercase());
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("kubeflow.org", "v1", kind), &plural);
    Api::namespaced_with(cluster.client(), namespace, &resource)
}

/// Returns the condition of this type if it is true.
pub(crate) fn condition<'a>(job: &'a DynamicObject, type_: &str) -> Option<&'a Value> {
    let conditions = job.data["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|c| c["type"] == type_ && c["status"] == "True")
}

/// Returns the operator's errors of a job, line by line. Returns none if it creates the job's pods.
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

/// Returns the events about a job, as `reason: message`.
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
