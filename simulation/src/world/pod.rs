//! Reads the JSON of pods.

use jiff::{SignedDuration, Timestamp};
use kube_memory::Object;
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

/// Returns true if the pod's first container exited with 0, and not because the pod was removed. The pod's deletion
/// must not have been requested by then, and the pod must not have been the target of a disruption or have failed
/// itself.
pub fn has_done_its_work(pod: &impl Json) -> bool {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let main = &pod.member("spec")["containers"][0]["name"];
    let status = pod.member("status");
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let end = containers
        .filter(|container| container["name"] == *main)
        .find_map(|container| container.get("state")?.get("terminated"));
    let Some(end) = end.filter(|end| end["exitCode"] == 0 && status["reason"].is_null()) else {
        return false;
    };
    let due = time(pod.meta("deletionTimestamp"));
    let grace = pod.meta("deletionGracePeriodSeconds").as_i64().unwrap_or(0);
    let requested = due.map(|due| due - SignedDuration::from_secs(grace));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let disrupted = conditions
        .filter(|condition| condition["type"] == "DisruptionTarget" && condition["status"] == "True")
        .find_map(|condition| time(&condition["lastTransitionTime"]));
    let ended = time(&end["finishedAt"]);
    let is_first = |other: Timestamp| ended.is_some_and(|ended| ended < other);
    [requested, disrupted].into_iter().flatten().all(is_first)
}

/// Returns true if the pod names a scheduler other than the default one, which then binds the pod.
pub fn has_scheduler(pod: &Object) -> bool {
    let named = pod["spec"]["schedulerName"].as_str().unwrap_or_default();
    !matches!(named, "" | "default-scheduler")
}

/// Returns true if the pod is bound to a node.
pub fn is_bound(pod: &impl Json) -> bool {
    pod.member("spec")["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty())
}
