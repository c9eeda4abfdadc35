//! Reads the JSON of pods.

use serde_json::Value;

use crate::world::json::Json;

/// Returns the attempt that a pod was created for.
pub fn attempt(pod: &impl Json) -> u32 {
    let annotation = &pod.meta("annotations")["training.kubeflow.org/restart-attempt"];
    annotation.as_str().and_then(|a| a.parse().ok()).unwrap_or(0)
}

/// Returns the names of the ConfigMaps in the `envFrom` lists of a pod's containers.
pub fn shared_environments(pod: &impl Json) -> impl Iterator<Item = &str> {
    let containers = pod.member("spec")["containers"].as_array().into_iter().flatten();
    let sources = containers.flat_map(|container| container["envFrom"].as_array().into_iter().flatten());
    sources.filter_map(|source| source["configMapRef"]["name"].as_str())
}

/// Returns the names of the ConfigMaps that a pod needs in order to start.
pub fn needed_maps(pod: &impl Json) -> impl Iterator<Item = &str> {
    let volumes = pod.member("spec")["volumes"].as_array().into_iter().flatten();
    let mounted = volumes.filter_map(|volume| volume["configMap"]["name"].as_str());
    shared_environments(pod).chain(mounted)
}

/// Returns the phase of a pod.
pub fn phase(pod: &impl Json) -> &str {
    pod.member("status")["phase"].as_str().unwrap_or("Pending")
}

/// Returns true if the pod has succeeded or failed.
pub fn has_ended(pod: &impl Json) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Returns true if the pod's first container exited with 0 and the pod has not failed itself. The exit code counts only
/// if the pod was not [`is_going`] before.
pub fn has_done_its_work(pod: &impl Json) -> bool {
    let end = main_end(pod);
    end.is_some_and(|end| end["exitCode"] == 0 && pod.member("status")["reason"].is_null())
}

/// Returns the end of the pod's first container, if it has ended.
fn main_end(pod: &impl Json) -> Option<&Value> {
    let main = &pod.member("spec")["containers"][0]["name"];
    let mut containers = containers(pod);
    let main = containers.find(|container| container["name"] == *main)?;
    main.get("state")?.get("terminated")
}

fn containers(pod: &impl Json) -> impl Iterator<Item = &Value> {
    pod.member("status")["containerStatuses"]
        .as_array()
        .into_iter()
        .flatten()
}

/// Returns true if a kubelet has restarted a container of the pod.
pub fn has_restarted(pod: &impl Json) -> bool {
    let lists =
        ["initContainerStatuses", "containerStatuses"].map(|list| pod.member("status")[list].as_array());
    let mut containers = lists.into_iter().flatten().flatten();
    containers.any(|container| container["restartCount"].as_i64() > Some(0))
}

/// Returns true if the pod is being deleted or is the target of a disruption while its first container runs.
pub fn is_going(pod: &impl Json) -> bool {
    let mut conditions = pod.member("status")["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let is_target = |c: &Value| c["type"] == "DisruptionTarget" && c["status"] == "True";
    let goes = !pod.meta("deletionTimestamp").is_null() || conditions.any(is_target);
    goes && main_end(pod).is_none() && !has_ended(pod)
}

/// Returns true if the pod's first container has ended and another one runs.
pub fn only_sidecars_run(pod: &impl Json) -> bool {
    let runs = |container: &Value| container["state"]["running"].is_object();
    phase(pod) == "Running" && main_end(pod).is_some() && containers(pod).any(runs)
}

/// Returns true if the pod names a scheduler other than the default one, which then binds the pod.
pub fn has_scheduler(pod: &impl Json) -> bool {
    let named = pod.member("spec")["schedulerName"].as_str().unwrap_or_default();
    !matches!(named, "" | "default-scheduler")
}

/// Returns true if the pod is bound to a node.
pub fn is_bound(pod: &impl Json) -> bool {
    pod.member("spec")["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty())
}
