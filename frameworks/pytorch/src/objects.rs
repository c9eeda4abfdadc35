//! The autoscaler of an elastic job, as the Go operator v1.8.1 creates it (`hpa.go`).

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Resource;
use serde_json::json;
use training_job::{JobObject, ObjectKind, Topology};

use crate::environment::WORKER;
use crate::{ElasticPolicy, PyTorchJob};

pub(crate) const AUTOSCALER: ObjectKind = ObjectKind::of::<HorizontalPodAutoscaler>();

/// Returns the autoscaler that changes the number of workers, if the job has metrics.
pub(crate) fn autoscaler(policy: &ElasticPolicy, topology: &Topology<'_>) -> Option<JobObject> {
    let metrics = policy.metrics.as_ref()?;
    let (min, max) = policy.bounds(topology.replicas(WORKER));
    let target = json!({
        "apiVersion": PyTorchJob::api_version(&()), "kind": PyTorchJob::kind(&()), "name": topology.job,
    });
    let spec = json!({
        "scaleTargetRef": target, "minReplicas": min, "maxReplicas": max, "metrics": metrics,
    });
    Some(AUTOSCALER.object(topology.job, json!({ "spec": spec })))
}
