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
    pub(crate) operator: kube::Client,
    pub(crate) job_type: JobType,
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
        fixture
            .user("POST", &direct::path(fixture.job_type.plural(), ""), job)
            .await;
        fixture
    }

    pub(crate) async fn call(client: &kube::Client, method: &str, path: &str, body: Value) {
        let request = request(method.parse().unwrap(), path, &body);
        client.request::<Value>(request).await.unwrap();
    }

    pub(crate) async fn user(&self, method: &str, path: &str, body: Value) {
        Self::call(&self.cluster.client("default"), method, path, body).await;
    }

    pub(crate) async fn operator(&self, method: &str, path: &str, body: Value) {
        Self::call(&self.operator, method, path, body).await;
    }

    pub(crate) fn job(&self) -> Value {
        self.cluster
            .get(self.job_type.plural(), "default", "job")
            .unwrap()
            .value()
            .clone()
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
        self.operator("POST", PODS, self.pod(name)).await;
    }

    /// Writes that a pod has succeeded, as its node does.
    pub(crate) async fn succeed(&self, name: &str) {
        let path = format!("{PODS}/{name}/status");
        let end = json!({"exitCode": 0, "finishedAt": "2030-01-01T00:00:00Z"});
        let container = json!({"name": "mxnet", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": end}});
        let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [container]}});
        self.user("PATCH", &path, status).await;
    }

    pub(crate) async fn status(&self, status: Value) {
        let path = format!("{JOBS}/job/status");
        self.operator("PATCH", &path, json!({"status": status})).await;
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

pub(crate) const JOBS: &str = "/apis/kubeflow.org/v1/namespaces/default/mxjobs";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The name of a ConfigMap that the compact job's pods may share.
pub(crate) const SHARED: &str = "job-env-0123456789abcdef";

pub(crate) fn condition(condition_type: &str) -> Value {
    json!({"type": condition_type, "status": "True"})
}
