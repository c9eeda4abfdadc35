//! A cluster with a job. The test acts as the operator.

use std::time::Duration;

use http::Method;
use kube_memory::{Cluster, Description};
use serde_json::{Value, json};
use training_job_simulation::invariants::{AllowedStaleness, Monitor};
use training_job_simulation::world::direct::{self, request};
use training_job_simulation::world::history::History;
use training_job_simulation::world::job::{self, JobType};
use training_job_simulation::world::network::Network;

/// A cluster with a job, and an operator's client for the test.
pub(crate) struct Fixture {
    pub(crate) cluster: Cluster,
    pub(crate) network: Network,
    pub(crate) monitor: Monitor,
    operator: kube::Client,
    job_type: JobType,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(job::new(JobType::Train, "job", &[("Worker", 2)], "Never")).await
    }

    /// Creates a cluster with a compact job.
    pub(crate) async fn compact() -> Self {
        let mut job = job::new(JobType::Train, "job", &[("Worker", 2)], "Never");
        job["spec"]["runPolicy"] = json!({"layout": "Compact"});
        Self::with(job).await
    }

    pub(crate) async fn with(job: Value) -> Self {
        let cluster = Cluster::new();
        for (kind, plural) in [("MXJob", "mxjobs"), ("MPIJob", "mpijobs")] {
            cluster.install(Description::new("kubeflow.org", "v1", kind, plural).with_status());
        }
        let history = History::default();
        let network = Network::new(&cluster, history.clone());
        let staleness = AllowedStaleness {
            of_others: 1_000,
            of_own: 0,
        };
        let monitor = Monitor::attach(&cluster, &network, &history, staleness);
        let (operator, ..) = network.connect();
        let fixture = Self {
            cluster,
            network,
            monitor,
            operator,
            job_type: JobType::of(&job).unwrap(),
        };
        fixture.user("POST", fixture.job_type.plural(), "", job).await;
        fixture
    }

    async fn call(client: &kube::Client, method: &str, path: &str, body: Value) {
        let request = request(method.parse().unwrap(), path, &body);
        client.request::<Value>(request).await.unwrap();
    }

    /// Creates an object as the operator.
    pub(crate) async fn post(&self, object: Value) {
        let plural = object["kind"].as_str().unwrap().to_lowercase() + "s";
        Self::call(&self.operator, "POST", &path(&plural, ""), object).await;
    }

    /// Creates a child of the job that is not a pod.
    pub(crate) async fn make(&self, kind: &str, name: &str) {
        self.post(self.child(kind, name)).await;
    }

    /// Patches an object as the operator.
    pub(crate) async fn patch(&self, plural: &str, name: &str, patch: Value) {
        Self::call(&self.operator, "PATCH", &path(plural, name), patch).await;
    }

    /// Deletes an object as the operator: with its UID, and with this grace period if it has one.
    pub(crate) async fn delete(&self, plural: &str, name: &str, seconds: Option<u64>) {
        let uid = self.stored(plural, name)["metadata"]["uid"].clone();
        let options = json!({"preconditions": {"uid": uid}, "gracePeriodSeconds": seconds});
        Self::call(&self.operator, "DELETE", &path(plural, name), options).await;
    }

    pub(crate) async fn delete_without_uid(&self, plural: &str, name: &str) {
        Self::call(&self.operator, "DELETE", &path(plural, name), json!({})).await;
    }

    /// Sends a call as a user or as a node.
    pub(crate) async fn user(&self, method: &str, plural: &str, name: &str, body: Value) {
        Self::call(&self.cluster.client("default"), method, &path(plural, name), body).await;
    }

    /// Deletes an object at once, as a user.
    pub(crate) async fn remove(&self, plural: &str, name: &str) {
        self.user("DELETE", plural, name, json!({"gracePeriodSeconds": 0}))
            .await;
    }

    /// Sets the phase of a pod to `Running`, as its node does.
    pub(crate) async fn run(&self, pod: &str) {
        let running = json!({"status": {"phase": "Running"}});
        self.user("PATCH", "pods", &format!("{pod}/status"), running)
            .await;
    }

    pub(crate) fn stored(&self, plural: &str, name: &str) -> Value {
        self.cluster.get(plural, "default", name).unwrap().value().clone()
    }

    pub(crate) fn job(&self) -> Value {
        self.stored(self.job_type.plural(), "job")
    }

    /// Returns a pod of the job.
    pub(crate) fn pod(&self, name: &str) -> Value {
        let key = name.strip_prefix("job-").unwrap_or(name);
        let (role, index) = key.rsplit_once('-').unwrap_or((key, "0"));
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default",
                "labels": {
                    "training.kubeflow.org/operator-name": "mxjob-controller",
                    "training.kubeflow.org/replica-type": role,
                    "training.kubeflow.org/replica-index": index,
                },
                "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": self.job_type.kind(), "name": "job",
                    "uid": self.job()["metadata"]["uid"], "controller": true}],
            },
            "spec": {"containers": [{"name": "mxnet", "image": "i"}]},
        })
    }

    /// Returns a child of the job that is not a pod.
    pub(crate) fn child(&self, kind: &str, name: &str) -> Value {
        let mut child = self.pod(name);
        child["kind"] = json!(kind);
        child["spec"] = match kind {
            "Service" => json!({"clusterIP": "None"}),
            _ => Value::Null,
        };
        child
    }

    /// Returns a pod of the job whose environment refers to [`SHARED`], and ends like that of rank 0.
    pub(crate) fn sharing_pod(&self, name: &str) -> Value {
        let mut pod = self.pod(name);
        let container = &mut pod["spec"]["containers"][0];
        container["envFrom"] = json!([{"configMapRef": {"name": SHARED}}]);
        container["env"] = json!([{"name": "MX_CONFIG", "value": "$(MX_CONFIG)0}}"}]);
        pod
    }

    pub(crate) async fn create(&self, name: &str) {
        self.post(self.pod(name)).await;
    }

    /// Writes that a pod has succeeded, as its node does.
    pub(crate) async fn succeed(&self, name: &str) {
        let end = json!({"exitCode": 0, "finishedAt": "2030-01-01T00:00:00Z"});
        let container = json!({"name": "mxnet", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": end}});
        let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [container]}});
        self.user("PATCH", "pods", &format!("{name}/status"), status)
            .await;
    }

    pub(crate) async fn status(&self, status: Value) {
        self.patch("mxjobs", "job/status", json!({"status": status}))
            .await;
    }

    /// Writes a status with this condition alone, as the operator.
    pub(crate) async fn set_condition(&self, condition_type: &str) {
        self.status(json!({"conditions": [condition(condition_type)]}))
            .await;
    }

    /// Starts a watch of pods from this version as the operator. Its events are not read.
    pub(crate) async fn watch(&self, version: u64) {
        let path = format!("/api/v1/pods?watch=true&resourceVersion={version}");
        let request = request(Method::GET, &path, &Value::Null);
        // A call with a fault fails.
        let _ = self.operator.send(request.map(Into::into)).await;
    }

    pub(crate) async fn wait_past_allowed_staleness() {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    pub(crate) fn violated(&self) -> Vec<&'static str> {
        self.monitor.violations().iter().map(|v| v.id).collect()
    }
}

fn path(plural: &str, name: &str) -> String {
    let path = direct::path(plural, name);
    match plural {
        "events" => path.replace("apis/kubeflow.org/v1", "api/v1"),
        "podgroups" => path.replace("kubeflow.org/v1", "scheduling.volcano.sh/v1beta1"),
        _ => path,
    }
}

/// The name of a ConfigMap that the compact job's pods may share.
pub(crate) const SHARED: &str = "job-env-0123456789abcdef";

pub(crate) fn condition(condition_type: &str) -> Value {
    json!({"type": condition_type, "status": "True"})
}
