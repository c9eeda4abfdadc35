//! The objects that the operator would create now for a job in a cluster.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::Value;
use training_job::plan::observed::{Observed, PodRecord};
use training_job::render::decode;
use training_job::validate::validate_any;
use training_job::{FieldErrors, Kind, Settings, plan};

/// Plans the objects of a job other than services and pods, as the operator would create them now. They may depend on
/// the state of the pods: a PodGroup and a list of hosts do.
pub fn planned_objects(
    kind: &Kind,
    job: &Value,
    settings: &Settings,
    running: &[Value],
) -> Result<Vec<Value>, FieldErrors> {
    let job = decode(kind, job)?;
    let valid = validate_any(kind, &*job, settings)?;
    let pods = running.iter().filter(|object| object["kind"] == "Pod");
    let pods = pods.filter_map(|pod| Pod::deserialize(pod).ok());
    let records = pods.map(|pod| (pod.name_any(), Arc::new(PodRecord::from(&pod))));
    let observed = Observed {
        pods: records.collect(),
        ..Observed::default()
    };
    let objects = plan(&valid, &observed, Timestamp::now()).create_objects;
    let objects = objects.iter().map(serde_json::to_value);
    Ok(objects.collect::<Result<_, _>>()?)
}
