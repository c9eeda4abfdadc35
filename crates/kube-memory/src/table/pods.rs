//! The row of a pod.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::json::array;
use crate::table::age::since;

fn text<'v>(value: &'v Value, or: &'v str) -> &'v str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(or)
}

/// Returns the condition of the row of a pod that has ended.
pub(super) fn completion(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// The numbers and the state of a pod's containers.
#[derive(Default)]
struct Summary<'p> {
    reason: String,
    ready: usize,
    restarts: i64,
    /// The restarts of init containers that run beside the others.
    sidecar_restarts: i64,
    /// The latest end of a run.
    last_end: Option<&'p str>,
}

pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let is_sidecar = |container: &&Value| container["restartPolicy"] == "Always";
    let sidecars = array(spec.get("initContainers")).filter(is_sidecar).count();
    let total = array(spec.get("containers")).count() + sidecars;
    let summary = summarize(pod);
    let mut restarts = summary.restarts.to_string();
    if let Some(end) = summary.last_end.filter(|_| summary.restarts != 0) {
        restarts.push_str(&format!(" ({} ago)", since(&json!(end), now)));
    }
    let gates: Vec<bool> = array(spec.get("readinessGates"))
        .map(|gate| condition(pod, text(&gate["conditionType"], "")) == Some("True"))
        .collect();
    let gates = match gates.len() {
        0 => "<none>".to_owned(),
        all => format!("{}/{all}", gates.iter().filter(|is_met| **is_met).count()),
    };
    vec![
        json!(format!("{}/{total}", summary.ready)),
        json!(summary.reason),
        json!(restarts),
        json!(since(&pod["metadata"]["creationTimestamp"], now)),
        json!(text(&status["podIP"], "<none>")),
        json!(text(&spec["nodeName"], "<none>")),
        json!(text(&status["nominatedNodeName"], "<none>")),
        json!(gates),
    ]
}

fn condition<'p>(pod: &'p Value, type_: &str) -> Option<&'p str> {
    let mut conditions = array(pod["status"].get("conditions"));
    conditions.find(|condition| condition["type"] == type_)?["status"].as_str()
}

fn summarize(pod: &Value) -> Summary<'_> {
    let status = &pod["status"];
    let mut summary = Summary {
        reason: text(&status["reason"], text(&status["phase"], "")).to_owned(),
        ..Summary::default()
    };
    let is_gated =
        |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if array(status.get("conditions")).any(is_gated) {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let is_initializing = init_containers(pod, &mut summary);
    if !is_initializing || condition(pod, "Initialized") == Some("True") {
        main_containers(pod, &mut summary);
    }
    if pod["metadata"].get("deletionTimestamp").is_some() {
        if status["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(status["phase"].as_str(), Some("Succeeded" | "Failed")) {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

/// Returns the reason of an ended container: its own, or that made of its signal or exit code.
fn end_reason(terminated: &Value) -> String {
    let signal = terminated["signal"].as_i64().unwrap_or_default();
    match (terminated["reason"].as_str().unwrap_or_default(), signal) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn add_end<'p>(container: &'p Value, last: &mut Option<&'p str>) {
    let end = container["lastState"]["terminated"]["finishedAt"].as_str();
    // Times of this form have the order of their texts.
    *last = end.max(*last);
}

/// Adds the init containers. Returns true if one of them has not ended.
fn init_containers<'p>(pod: &'p Value, summary: &mut Summary<'p>) -> bool {
    let specs = || array(pod["spec"].get("initContainers"));
    let mut is_initializing = false;
    for (index, container) in array(pod["status"].get("initContainerStatuses")).enumerate() {
        summary.restarts += container["restartCount"].as_i64().unwrap_or_default();
        add_end(container, &mut summary.last_end);
        let spec = specs().find(|spec| spec["name"] == container["name"]);
        let is_sidecar = spec.is_some_and(|spec| spec["restartPolicy"] == "Always");
        if is_sidecar {
            summary.sidecar_restarts += container["restartCount"].as_i64().unwrap_or_default();
        }
        let state = &container["state"];
        let (terminated, waiting) = (&state["terminated"], text(&state["waiting"]["reason"], ""));
        if terminated["exitCode"] == 0 {
            continue;
        }
        if is_sidecar && container["started"] == true {
            summary.ready += usize::from(container["ready"] == true);
            continue;
        }
        summary.reason = if !terminated.is_null() {
            format!("Init:{}", end_reason(terminated))
        } else if !matches!(waiting, "" | "PodInitializing") {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", specs().count())
        };
        is_initializing = true;
        break;
    }
    is_initializing
}

/// Adds the containers, the last one first, so that the reason is that of the first.
fn main_containers<'p>(pod: &'p Value, summary: &mut Summary<'p>) {
    summary.restarts = summary.sidecar_restarts;
    let mut is_one_running = false;
    let containers: Vec<_> = array(pod["status"].get("containerStatuses")).collect();
    for container in containers.into_iter().rev() {
        summary.restarts += container["restartCount"].as_i64().unwrap_or_default();
        add_end(container, &mut summary.last_end);
        let state = &container["state"];
        let waiting = text(&state["waiting"]["reason"], "");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if !state["terminated"].is_null() {
            summary.reason = end_reason(&state["terminated"]);
        } else if container["ready"] == true && !state["running"].is_null() {
            is_one_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" && is_one_running {
        let is_ready = condition(pod, "Ready") == Some("True");
        let reason = if is_ready { "Running" } else { "NotReady" };
        reason.clone_into(&mut summary.reason);
    }
}
