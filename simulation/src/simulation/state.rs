//! The state of the cluster, as tests compare it.

use serde_json::Value;

use super::Simulation;
use crate::world::{job, pod};

impl Simulation {
    /// Returns the number of pods that have not started.
    pub fn pending_pods(&self) -> usize {
        let pods = self.cluster.list("pods", None);
        let pending = pods.iter().filter(|pod| pod::phase(pod.value()) == "Pending");
        pending.count()
    }

    /// Returns a stored object, or null if it does not exist.
    pub fn stored(&self, resource: &str, name: &str) -> Value {
        self.cluster
            .get(resource, "default", name)
            .map_or(Value::Null, |o| o.value().clone())
    }

    /// Returns the status of a job.
    pub fn status(&self, job: &str) -> Value {
        self.stored(self.job_types[0].plural(), job)["status"].clone()
    }

    /// Returns the job's conditions in order, such as `Created Running=False Succeeded`.
    pub fn conditions(&self, job: &str) -> String {
        let Some(job) = self.cluster.get(self.job_types[0].plural(), "default", job) else {
            return String::new();
        };
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let word = |c: &Value| match &c["status"] {
            status if status == "True" => text(&c["type"]),
            status => format!("{}={}", text(&c["type"]), text(status)),
        };
        job::conditions(&*job).map(word).collect::<Vec<_>>().join(" ")
    }

    /// Returns all pods, such as `job-worker-0:Running`, with `+1` after the name for attempt 1, and `!` if
    /// terminating.
    pub fn pods_now(&self) -> Vec<String> {
        let text = |pod: &Value| {
            let attempt = match pod::attempt(pod) {
                0 => String::new(),
                n => format!("+{n}"),
            };
            let deleting = if job::is_deleting(pod) { "!" } else { "" };
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            format!("{name}{attempt}:{}{deleting}", pod::phase(pod))
        };
        let pods = self.cluster.list("pods", None);
        pods.iter().map(|o| text(o.value())).collect()
    }

    /// Returns the names of all services.
    pub fn services_now(&self) -> Vec<String> {
        let objects = self.cluster.list("services", None);
        let name = |o: &Value| o["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        objects.iter().map(|o| name(o.value())).collect()
    }

    /// Returns the reasons of all events, in the order of their creation.
    pub fn events(&self) -> Vec<String> {
        let mut events = self.cluster.list("events", None);
        events.sort_by_key(|e| e.resource_version());
        let reason = |o: &Value| o["reason"].as_str().unwrap_or_default().to_owned();
        events.iter().map(|e| reason(e.value())).collect()
    }
}
