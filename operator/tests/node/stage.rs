//! A namespace with jobs.

use std::collections::{BTreeMap, BTreeSet};

use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, LogParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use tokio::time::timeout;
use training_job_testbed::cluster::{ControlPlane, WAIT_TIMEOUT, wait, wait_for_all};

use crate::cluster::{cluster, lab};

pub(crate) struct Stage {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) namespace: String,
}

impl Stage {
    pub(crate) async fn new(name: &str) -> Self {
        let plane = cluster().await;
        let namespace = plane.namespace(name).await;
        Self { plane, namespace }
    }

    /// Returns the jobs of the kind and version of this one.
    fn jobs_like(&self, job: &Value) -> Api<DynamicObject> {
        let (group, version) = job["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = GroupVersionKind::gvk(group, version, job["kind"].as_str().unwrap());
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.plane.client(), &self.namespace, &resource)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.plane.client(), &self.namespace)
    }

    /// Runs kubectl in the namespace, which must succeed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let arguments = [arguments, &["--namespace", &self.namespace]].concat();
        self.plane.kubectl(&arguments).await.success()
    }

    /// Creates objects of any kind.
    pub(crate) async fn apply(&self, object: &Value) {
        let arguments = ["apply", "--namespace", &self.namespace, "-f", "-"];
        let text = object.to_string();
        let applied = self.plane.kubectl_with_input(&arguments, &text);
        applied.await.success();
    }

    pub(crate) async fn create(&self, job: &Value) -> Timestamp {
        let now = Timestamp::now();
        let object: DynamicObject = serde_json::from_value(job.clone()).unwrap();
        self.jobs_like(job)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        now
    }

    /// Waits until the status of a job meets a condition, and returns it.
    pub(crate) async fn until(&self, job: &Value, mut look: impl FnMut(&Value) -> bool) -> Value {
        let api = self.jobs_like(job);
        let name = job["metadata"]["name"].as_str().unwrap();
        let found = wait(api, name, |job: Option<&DynamicObject>| {
            job.is_some_and(|job| look(&job.data["status"]))
        });
        found.await.unwrap().data["status"].clone()
    }

    /// Waits until a condition of a job is true, and returns the status.
    pub(crate) async fn condition(&self, job: &Value, type_: &str) -> Value {
        self.until(job, |status| is(status, type_)).await
    }

    /// Waits for the end of a job, which must succeed, and returns the time from then.
    pub(crate) async fn succeeds(&self, job: &Value) -> Value {
        let status = self
            .until(job, |status| is(status, "Succeeded") || is(status, "Failed"))
            .await;
        assert!(is(&status, "Succeeded"), "{status:#}");
        status
    }

    /// Waits until the operator has restarted a job as a whole this many times, and returns the status.
    pub(crate) async fn restarted(&self, job: &Value, times: u64) -> Value {
        self.until(job, |status| status["restartCount"] == times).await
    }

    /// Waits for an event about a job and returns its message.
    pub(crate) async fn event(&self, job: &Value, reason: &str) -> String {
        let api: Api<Event> = Api::namespaced(self.plane.client(), &self.namespace);
        let name = job["metadata"]["name"].as_str();
        let is = |event: &&Event| {
            event.involved_object.name.as_deref() == name
                && event.involved_object.kind.as_deref() == job["kind"].as_str()
                && event.reason.as_deref() == Some(reason)
        };
        let all = wait_for_all(api, "", |all| all.iter().any(|event| is(&event))).await;
        all.iter().find(is).unwrap().message.clone().unwrap_or_default()
    }

    /// Returns the columns of `kubectl get` for a job.
    pub(crate) async fn columns(&self, job: &Value) -> BTreeMap<String, String> {
        let (kind, name) = (
            job["kind"].as_str().unwrap(),
            job["metadata"]["name"].as_str().unwrap(),
        );
        let table = self.kubectl(&["get", kind, name, "-o", "wide"]).await;
        columns(&table)
    }

    /// Waits until this pod exists and its first container has started, in another pod than `before`.
    async fn started(&self, name: &str, before: Option<&Pod>) -> Pod {
        let old = before.and_then(ResourceExt::uid);
        let found = wait(self.pods(), name, |pod: Option<&Pod>| {
            pod.is_some_and(|pod| pod.uid() != old && main_container(pod).is_some_and(has_started))
        });
        found.await.unwrap()
    }

    /// Waits until a pod prints a line with this text, in another pod than `before`. Returns the pod and the time of
    /// the line.
    pub(crate) async fn prints(&self, name: &str, text: &str, before: Option<&Pod>) -> (Pod, Timestamp) {
        let pod = self.started(name, before).await;
        let parameters = LogParams {
            container: main_container(&pod).map(|status| status.name.clone()),
            follow: true,
            timestamps: true,
            ..LogParams::default()
        };
        let follow = async {
            let mut lines = self.pods().log_stream(name, &parameters).await.unwrap().lines();
            let mut printed = String::new();
            while let Some(line) = lines.try_next().await.unwrap() {
                if line.contains(text) {
                    return line.split(' ').next().unwrap().parse().unwrap();
                }
                printed += &format!("{line}\n");
            }
            panic!("{name} ended without {text:?}:\n{printed}")
        };
        let time = timeout(WAIT_TIMEOUT, follow).await;
        (
            pod,
            time.unwrap_or_else(|_| panic!("{name} does not print {text:?}")),
        )
    }

    /// Returns the log of a pod with one container.
    pub(crate) async fn log(&self, pod: &str) -> String {
        self.pods().logs(pod, &LogParams::default()).await.unwrap()
    }

    /// Returns the nodes that the pods of the namespace are on.
    pub(crate) async fn nodes(&self) -> BTreeSet<String> {
        let pods = self.pods().list(&ListParams::default()).await.unwrap();
        pods.into_iter().filter_map(|pod| pod.spec?.node_name).collect()
    }

    /// Kills the process of a pod's first container with SIGKILL, as the node's kernel would. Returns the time.
    pub(crate) async fn kill(&self, pod: &Pod) -> Timestamp {
        self.signal(pod, "SIGKILL").await
    }

    /// Sends a signal to the process of a pod's first container. Returns the time.
    pub(crate) async fn signal(&self, pod: &Pod, signal: &str) -> Timestamp {
        let node = pod.spec.as_ref().unwrap().node_name.as_deref().unwrap();
        let id = main_container(pod).unwrap().container_id.as_deref().unwrap();
        let id = id.strip_prefix("containerd://").unwrap();
        let now = Timestamp::now();
        lab(&[
            "exec",
            number(node),
            "ctr",
            "-n",
            "k8s.io",
            "task",
            "kill",
            "--signal",
            signal,
            id,
        ])
        .await;
        now
    }

    /// Waits until the namespace has this number of pods.
    pub(crate) async fn has_pods(&self, count: usize) {
        wait_for_all(self.pods(), "", |pods| pods.len() == count).await;
    }
}

/// Returns the number of a node: `2` for `node-2`.
pub(crate) fn number(node: &str) -> &str {
    node.strip_prefix("node-").unwrap()
}

fn main_container(pod: &Pod) -> Option<&ContainerStatus> {
    let main = &pod.spec.as_ref()?.containers.first()?.name;
    let all = pod.status.as_ref()?.container_statuses.as_ref()?;
    all.iter().find(|status| status.name == *main)
}

fn has_started(status: &ContainerStatus) -> bool {
    let state = status.state.as_ref();
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Returns true if a condition in a status is true.
pub(crate) fn is(status: &Value, type_: &str) -> bool {
    let conditions = status["conditions"].as_array();
    let mut all = conditions.into_iter().flatten();
    all.any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// Reads a table with one row. Each column begins at its title.
fn columns(table: &str) -> BTreeMap<String, String> {
    let mut lines = table.lines();
    let (titles, row) = (lines.next().unwrap(), lines.next().unwrap());
    let starts = titles
        .char_indices()
        .filter(|&(at, character)| character != ' ' && (at == 0 || titles[..at].ends_with(' ')));
    let starts: Vec<_> = starts.map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
    let cell = |line: &str, from: usize, to: usize| {
        let to = to.min(line.len());
        line.get(from..to).unwrap_or_default().trim().to_owned()
    };
    let cells = starts.iter().zip(ends);
    cells
        .map(|(&from, to)| (cell(titles, from, to), cell(row, from, to)))
        .collect()
}
