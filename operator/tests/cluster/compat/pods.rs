//! The status of a pod as the kubelet writes it, in the form of the scenarios.

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The start of all containers. It is long ago, so that our operator delays no restart. The Go operator delays none.
const STARTED: &str = "2020-01-01T00:00:00Z";

/// A step `pod` or `pods`, without its target.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Life {
    phase: Option<String>,
    /// The exit code of the first container, or of the named one.
    exit_code: Option<i32>,
    container: Option<String>,
    terminated_reason: Option<String>,
    terminated_message: Option<String>,
    restart_count: i32,
    waiting: Option<Value>,
    /// True if the container has ended and the pod still runs.
    terminated: bool,
    reason: Option<String>,
    message: Option<String>,
    no_container_statuses: bool,
    conditions: Option<Value>,
    /// Assigns the pod to a node first, so that a deletion waits for the kubelet.
    pub(crate) bind: bool,
}

impl Life {
    /// Returns the patch of a pod's status.
    pub(crate) fn status(&self, pod: &Value) -> Value {
        let now = json!(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let phase = self.phase.as_deref().unwrap_or_default();
        let mut status = Map::new();
        let told = [
            ("phase", &self.phase),
            ("reason", &self.reason),
            ("message", &self.message),
        ];
        for (key, value) in told {
            if let Some(value) = value {
                status.insert(key.to_owned(), value.as_str().into());
            }
        }
        if phase != "Pending" {
            let start = pod["status"].get("startTime").unwrap_or(&now);
            status.insert("startTime".to_owned(), start.clone());
        }
        if self.no_container_statuses {
            status.insert("containerStatuses".to_owned(), Value::Null);
        } else if matches!(phase, "Running" | "Succeeded" | "Failed") || self.waiting.is_some() {
            let all = pod["spec"]["containers"].as_array().into_iter().flatten();
            let all = all.enumerate().map(|(n, container)| {
                let is_main = match &self.container {
                    Some(name) => container["name"] == name.as_str(),
                    None => n == 0,
                };
                self.container_status(container, is_main, &now)
            });
            status.insert("containerStatuses".to_owned(), all.collect());
        }
        let ready = if phase == "Running" { "True" } else { "False" };
        let conditions = [
            ("PodScheduled", "True"),
            ("Initialized", "True"),
            ("ContainersReady", ready),
            ("Ready", ready),
        ];
        let conditions = conditions.map(|(t, s)| json!({"type": t, "status": s, "lastTransitionTime": now}));
        let conditions = self
            .conditions
            .clone()
            .unwrap_or_else(|| conditions.into_iter().collect());
        status.insert("conditions".to_owned(), conditions);
        json!({ "status": status })
    }

    fn container_status(&self, container: &Value, is_main: bool, now: &Value) -> Value {
        let phase = self.phase.as_deref().unwrap_or_default();
        let runs = phase == "Running";
        let code = match self.exit_code {
            _ if !is_main => 0,
            Some(code) => code,
            None => i32::from(phase == "Failed"),
        };
        let word = if code == 0 { "Completed" } else { "Error" };
        let word = self
            .terminated_reason
            .as_deref()
            .filter(|_| is_main)
            .unwrap_or(word);
        let mut ended = json!({"exitCode": code, "reason": word, "startedAt": STARTED, "finishedAt": now});
        if let Some(message) = self.terminated_message.as_ref().filter(|_| is_main) {
            ended["message"] = message.as_str().into();
        }
        let mut status = json!({
            "name": container["name"], "image": container["image"], "imageID": "",
            "restartCount": if is_main { self.restart_count } else { 0 },
        });
        let (state, ready) = match &self.waiting {
            Some(waiting) if is_main => {
                if self.exit_code.is_some() {
                    status["lastState"] = json!({ "terminated": ended });
                }
                (json!({ "waiting": waiting }), false)
            }
            _ if matches!(phase, "Succeeded" | "Failed") || (runs && is_main && self.terminated) => {
                (json!({ "terminated": ended }), false)
            }
            _ => (json!({"running": {"startedAt": now}}), runs),
        };
        status["state"] = state;
        if is_main && self.restart_count > 0 {
            let ended = json!({"exitCode": 1, "reason": "Error", "startedAt": STARTED, "finishedAt": now});
            status["lastState"] = json!({"terminated": ended});
        }
        status["ready"] = ready.into();
        status["started"] = ready.into();
        status
    }
}
