//! Manifests that are applied repeatedly, as GitOps tools do. After an apply nothing is out of sync, although the API
//! server sets default numbers of replicas.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, wait_for_all};
use training_operator_testing::program::{empty_directory, root};

use super::operator;
use super::released::module;

/// The kinds whose default number of replicas is 1, with the field of the specs, a role and its container.
const KINDS: [(&str, &str, &str, &str); 6] = [
    ("MXJob", "mxReplicaSpecs", "Worker", "mxnet"),
    ("TFJob", "tfReplicaSpecs", "Worker", "tensorflow"),
    ("XGBoostJob", "xgbReplicaSpecs", "Master", "xgboost"),
    ("PyTorchJob", "pytorchReplicaSpecs", "Worker", "pytorch"),
    ("JAXJob", "jaxReplicaSpecs", "Worker", "jax"),
    ("PaddleJob", "paddleReplicaSpecs", "Worker", "paddle"),
];

/// Returns a job with these roles and numbers of replicas.
fn job(kind: &str, name: &str, field: &str, container: &str, roles: &[(&str, Value)]) -> Value {
    let template = json!({"spec": {"containers": [{"name": container, "image": "i"}]}});
    let mut job =
        json!({"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": {}});
    if kind == "MXJob" {
        job["spec"]["jobMode"] = "MXTrain".into();
    }
    for (role, replicas) in roles {
        let mut spec = json!({"template": template});
        if !replicas.is_null() {
            spec["replicas"] = replicas.clone();
        }
        job["spec"][field][role] = spec;
    }
    job
}

/// The way in which a tool applies manifests.
#[derive(Clone, Copy, Debug)]
enum Way {
    ClientSide,
    ServerSide,
}

impl Way {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::ClientSide => &[],
            Self::ServerSide => &["--server-side"],
        }
    }
}

struct Tool<'c> {
    cluster: &'c ControlPlane,
    namespace: String,
    way: Way,
}

impl Tool<'_> {
    async fn apply(&self, job: &Value) {
        let arguments = [&["apply", "-n", &self.namespace, "-f", "-"], self.way.flags()].concat();
        self.cluster
            .kubectl_with_input(&arguments, &job.to_string())
            .await
            .success();
    }

    /// Returns the tool's diff against the manifest.
    async fn difference(&self, job: &Value) -> String {
        let arguments = [&["diff", "-n", &self.namespace, "-f", "-"], self.way.flags()].concat();
        let output = self
            .cluster
            .kubectl_with_input(&arguments, &job.to_string())
            .await;
        assert!(output.code <= 1, "{output:?}");
        output.stdout
    }

    /// Applies a job, checks that nothing is out of sync, and returns the stored number of replicas of a role.
    async fn sync(&self, job: &Value, field: &str, role: &str) -> Value {
        self.apply(job).await;
        assert_eq!(self.difference(job).await, "", "{:?} {job}", self.way);
        self.replicas(job, field, role).await
    }

    async fn replicas(&self, job: &Value, field: &str, role: &str) -> Value {
        let kind = job["kind"].as_str().unwrap();
        let jobs = operator::jobs(self.cluster, &self.namespace, kind);
        let stored = jobs.get(job["metadata"]["name"].as_str().unwrap()).await.unwrap();
        stored.data["spec"][field][role]["replicas"].clone()
    }

    async fn scale(&self, job: &Value, field: &str, role: &str, replicas: i32) {
        let patch = json!({"spec": {field: {role: {"replicas": replicas}}}}).to_string();
        let (kind, name) = (
            job["kind"].as_str().unwrap(),
            job["metadata"]["name"].as_str().unwrap(),
        );
        let arguments = [
            "patch",
            kind,
            name,
            "-n",
            &self.namespace,
            "--type=merge",
            "-p",
            &patch,
        ];
        self.cluster.kubectl(&arguments).await.success();
    }
}

async fn tools(name: &str) -> Vec<Tool<'static>> {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let mut tools = Vec::new();
    for way in [Way::ClientSide, Way::ServerSide] {
        let namespace = cluster.namespace(name).await;
        tools.push(Tool {
            cluster,
            namespace,
            way,
        });
    }
    tools
}

#[tokio::test]
async fn an_unset_number_of_replicas_is_stored_as_one_without_a_difference() {
    for tool in tools("unset").await {
        for (kind, field, role, container) in KINDS {
            for unset in [Value::Null, json!("null")] {
                let mut job = job(kind, "unset", field, container, &[(role, Value::Null)]);
                if unset == "null" {
                    job["spec"][field][role]["replicas"] = Value::Null;
                }
                assert_eq!(tool.sync(&job, field, role).await, 1, "{kind}");
            }
        }
        // One role of an MPIJob defaults to 0 and the other to 1, but a map has one schema for both.
        let roles = [("Launcher", Value::Null), ("Worker", Value::Null)];
        let job = job("MPIJob", "unset", "mpiReplicaSpecs", "mpi", &roles);
        for role in ["Launcher", "Worker"] {
            assert_eq!(tool.sync(&job, "mpiReplicaSpecs", role).await, Value::Null);
        }
    }
}

#[tokio::test]
async fn a_scaled_number_stays_unless_the_manifest_sets_it() {
    for tool in tools("scaled").await {
        for (kind, field, role, container) in KINDS.into_iter().filter(|(_, _, role, _)| *role == "Worker") {
            let unset = job(kind, "scaled", field, container, &[(role, Value::Null)]);
            let three = job(kind, "scaled", field, container, &[(role, json!(3))]);
            assert_eq!(tool.sync(&unset, field, role).await, 1, "{kind}");
            tool.scale(&unset, field, role, 4).await;
            assert_eq!(
                tool.sync(&unset, field, role).await,
                4,
                "{kind}: the manifest says nothing of it"
            );
            if matches!(tool.way, Way::ServerSide) {
                // The client that scaled the job owns the number. The tool must force the conflict.
                tool.scale(&unset, field, role, 3).await;
            }
            assert_eq!(tool.sync(&three, field, role).await, 3, "{kind}");
            if matches!(tool.way, Way::ClientSide) {
                assert_eq!(
                    tool.sync(&unset, field, role).await,
                    1,
                    "{kind}: the number was taken out of the manifest"
                );
            }
        }
    }
}

/// Waits for this number of pods and returns their names and UIDs.
async fn pods(tool: &Tool<'_>, count: usize) -> Vec<(String, String)> {
    let api: Api<Pod> = Api::namespaced(tool.cluster.client(), &tool.namespace);
    let all = wait_for_all(api, "training.kubeflow.org/job-name=live", |all| {
        all.len() == count && all.iter().all(|pod| pod.metadata.deletion_timestamp.is_none())
    });
    let all = all.await;
    all.iter()
        .map(|pod| (pod.name_any(), pod.uid().unwrap()))
        .collect()
}

/// As under the Go operator: see the recordings pt-scale and mx-update-template in tests/compat.
#[tokio::test]
async fn pods_of_a_job_that_is_applied_again_stay_and_its_last_ones_decide() {
    for tool in tools("live").await {
        let (field, role) = ("pytorchReplicaSpecs", "Worker");
        let elastic = |replicas: Value, image: &str| {
            let mut job = job("PyTorchJob", "live", field, "pytorch", &[(role, replicas)]);
            job["spec"]["elasticPolicy"] = json!({"minReplicas": 1, "maxReplicas": 4});
            let container = "/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0";
            job.pointer_mut(container).unwrap()["image"] = image.into();
            job
        };
        let running = operator::start(tool.cluster, &tool.namespace);
        let kubelet = tool.cluster.kubelet(&tool.namespace).await;
        tool.sync(&elastic(json!(3), "one"), field, role).await;
        let first = pods(&tool, 3).await;
        for (name, _) in &first {
            kubelet.runs(name).await;
        }
        // Existing pods are kept when the same manifest or another template is applied.
        tool.sync(&elastic(json!(3), "one"), field, role).await;
        tool.sync(&elastic(json!(3), "two"), field, role).await;
        // The default is one replica.
        assert_eq!(tool.sync(&elastic(Value::Null, "two"), field, role).await, 1);
        let left = pods(&tool, 1).await;
        assert_eq!(left, first[..1], "the others go");
        tool.scale(&elastic(Value::Null, "two"), field, role, 2).await;
        let both = pods(&tool, 2).await;
        assert_eq!(both[0], first[0]);
        let api: Api<Pod> = Api::namespaced(tool.cluster.client(), &tool.namespace);
        let made = api.get(&both[1].0).await.unwrap();
        assert_eq!(made.spec.unwrap().containers[0].image.as_deref(), Some("two"));
        tool.sync(&elastic(Value::Null, "two"), field, role).await;
        assert_eq!(
            pods(&tool, 2).await,
            both,
            "the number of whoever scaled it stays"
        );
        kubelet.runs(&both[1].0).await;
        kubelet.succeeds(&both[0].0).await;
        let jobs = operator::jobs(tool.cluster, &tool.namespace, "PyTorchJob");
        let has_succeeded = |job: Option<&kube::core::DynamicObject>| {
            job.is_some_and(|job| operator::condition(job, "Succeeded").is_some())
        };
        training_job_testbed::cluster::wait(jobs, "live", has_succeeded).await;
        let all = api.list(&ListParams::default()).await.unwrap();
        assert!(all.iter().any(|pod| pod.name_any() == both[0].0), "its logs stay");
        running.abort();
    }
}

/// First the definitions of the Go operator with jobs, then our definitions.
#[tokio::test]
async fn a_stored_job_without_a_number_has_one_replica_under_new_definitions() {
    let cluster = ControlPlane::start(Options::default()).await;
    let theirs = module().join("manifests/base/crds");
    let files = [
        "mxjobs",
        "tfjobs",
        "xgboostjobs",
        "pytorchjobs",
        "paddlejobs",
        "mpijobs",
    ];
    let folder = empty_directory("go-definitions");
    for plural in files {
        let file = format!("kubeflow.org_{plural}.yaml");
        fs::copy(theirs.join(&file), folder.join(&file)).unwrap();
    }
    apply_definitions(&cluster, &folder, &files).await;
    let namespace = cluster.namespace("stored").await;
    let kinds = KINDS.into_iter().filter(|(kind, ..)| *kind != "JAXJob");
    let way = Way::ClientSide;
    let tool = Tool {
        cluster: &cluster,
        namespace,
        way,
    };
    let kinds: Vec<_> = kinds.collect();
    for (kind, field, role, container) in &kinds {
        let job = job(kind, "stored", field, container, &[(role, Value::Null)]);
        tool.apply(&job).await;
        assert_eq!(tool.replicas(&job, field, role).await, Value::Null, "{kind}");
    }
    // An operator that starts before its definitions are installed treats an unset number as 1.
    let running = operator::start(&cluster, &tool.namespace);
    cluster
        .wait::<Pod>(&tool.namespace, "stored-master-0", |pod| pod.is_some())
        .await;
    apply_definitions(&cluster, &root().join("crds"), &files).await;
    let kubelet = cluster.kubelet(&tool.namespace).await;
    for (kind, field, role, container) in &kinds {
        let job = job(kind, "stored", field, container, &[(role, Value::Null)]);
        assert_eq!(tool.replicas(&job, field, role).await, 1, "{kind}");
        assert_eq!(tool.difference(&job).await, "", "{kind}");
    }
    // Its status is still updated, and it ends.
    cluster
        .wait::<Pod>(&tool.namespace, "stored-master-0", |pod| pod.is_some())
        .await;
    kubelet.runs("stored-master-0").await;
    kubelet.succeeds("stored-master-0").await;
    let jobs = operator::jobs(&cluster, &tool.namespace, "XGBoostJob");
    let has_succeeded = |job: Option<&kube::core::DynamicObject>| {
        job.is_some_and(|job| operator::condition(job, "Succeeded").is_some())
    };
    training_job_testbed::cluster::wait(jobs, "stored", has_succeeded).await;
    running.abort();
}

/// Applies definitions from files of a folder, as an installation does, and waits until they are served.
async fn apply_definitions(cluster: &ControlPlane, folder: &Path, plurals: &[&str]) {
    for plural in plurals {
        let name = format!("kubeflow.org_{plural}.yaml");
        // The definition of MPIJobs is apart.
        let mut files = [folder.join(&name), folder.join("mpi").join(&name)].into_iter();
        let file = files.find(|file| file.is_file()).unwrap();
        let apply = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            file.to_str().unwrap(),
        ];
        cluster.kubectl(&apply).await.success();
        cluster.served(&format!("{plural}.kubeflow.org")).await;
    }
}
