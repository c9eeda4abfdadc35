//! A release in a cluster, its operator as a process, and its jobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, Output, Program, Signal, wait_for_all};
use training_operator_testing::operator::Operator;
use training_operator_testing::program;

use crate::helm::{Helm, RELEASE, chart};

/// The namespace of the release.
pub(crate) const NAMESPACE: &str = "kubeflow";

pub(crate) struct Cluster {
    pub(crate) plane: ControlPlane,
    pub(crate) helm: Helm,
}

impl Cluster {
    pub(crate) async fn new(helm: Helm) -> Self {
        let plane = ControlPlane::start(Options::default()).await;
        Self { plane, helm }
    }

    /// Runs a command of Helm in the release's namespace.
    pub(crate) async fn helm(&self, arguments: &[&str]) -> Output {
        let arguments = [arguments, &["--namespace", NAMESPACE]].concat();
        self.helm.run_on(&self.plane, &arguments).await
    }

    /// Installs the release, or upgrades it.
    pub(crate) async fn install(&self, chart: &Path, flags: &[&str]) -> Output {
        let chart = chart.to_str().unwrap();
        let arguments = ["upgrade", "--install", "--create-namespace", RELEASE, chart];
        let installed = self.helm(&[&arguments[..], flags].concat()).await;
        if installed.code == 0 {
            for name in self.definitions().await.keys() {
                self.plane.served(name).await;
            }
        }
        installed
    }

    /// Returns the version label of each definition, and whether it has the columns of this version.
    pub(crate) async fn definitions(&self) -> BTreeMap<String, (String, bool)> {
        let all = self.get(&["customresourcedefinitions"]).await;
        let describe = |object: &Value| {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let version = &object["metadata"]["labels"]["app.kubernetes.io/version"];
            let columns = object["spec"]["versions"][0]["additionalPrinterColumns"].to_string();
            (
                name,
                (
                    version.as_str().unwrap_or_default().to_owned(),
                    columns.contains(NEW_COLUMN),
                ),
            )
        };
        all.iter().map(describe).collect()
    }

    /// Returns objects as `kubectl get` does.
    pub(crate) async fn get(&self, what: &[&str]) -> Vec<Value> {
        let arguments = [&["get", "-o", "json"], what].concat();
        let text = self.plane.kubectl(&arguments).await.success();
        let mut list: Value = serde_json::from_str(&text).unwrap();
        match list["items"].take() {
            Value::Array(items) => items,
            _ => vec![list],
        }
    }

    /// Starts an operator as the release's Deployment does, with the permissions of its service account.
    pub(crate) async fn operator(&self) -> Operator {
        let deployments = self.get(&["deployments", "--namespace", NAMESPACE]).await;
        let pod = &deployments[0]["spec"]["template"]["spec"];
        let arguments: Vec<String> = serde_json::from_value(pod["containers"][0]["args"].clone()).unwrap();
        let account = pod["serviceAccountName"].as_str().unwrap();
        let kubeconfig = self
            .plane
            .kubeconfig_for_service_account(NAMESPACE, account)
            .await;
        let mut started = Program::new(program::path())
            .args(arguments)
            .args([
                "--metrics-bind-address=127.0.0.1:0",
                "--health-probe-bind-address=127.0.0.1:0",
            ])
            .env("KUBECONFIG", kubeconfig);
        for variable in pod["containers"][0]["env"].as_array().into_iter().flatten() {
            let [name, value] = ["name", "value"].map(|field| variable[field].as_str().unwrap());
            started = started.env(name, value);
        }
        let operator = Operator(self.plane.spawn(started));
        operator.wait_for_metric("training_operator_leader", 1.0).await;
        operator.ready().await;
        operator
    }

    pub(crate) fn jobs(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("kubeflow.org", "v1", "PyTorchJob");
        Api::namespaced_with(self.plane.client(), namespace, &ApiResource::from_gvk(&kind))
    }

    pub(crate) async fn create(&self, namespace: &str, name: &str) {
        let pod = json!({"containers": [{"name": "pytorch", "image": "none"}]});
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"pytorchReplicaSpecs": {"Master": {"template": {"spec": pod}}}},
        });
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs(namespace)
            .create(&PostParams::default(), &job)
            .await
            .unwrap();
    }

    /// Waits until this number of jobs has a condition.
    pub(crate) async fn have(&self, namespace: &str, condition: &str, count: usize) {
        let is = |job: &&DynamicObject| {
            let conditions = job.data["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one["type"] == condition && one["status"] == "True")
        };
        wait_for_all(self.jobs(namespace), "", |all| {
            all.iter().filter(is).count() == count
        })
        .await;
    }

    /// Returns each job, pod and service of a namespace, and the version of its last change.
    pub(crate) async fn versions(&self, namespace: &str) -> BTreeMap<String, String> {
        let objects = self
            .get(&["pytorchjobs,pods,services", "--namespace", namespace])
            .await;
        let version = |object: &Value| {
            let (metadata, kind) = (&object["metadata"], &object["kind"]);
            let name = format!("{kind} {} {}", metadata["name"], metadata["uid"]);
            (name, metadata["resourceVersion"].to_string())
        };
        objects.iter().map(version).collect()
    }

    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.plane.client(), namespace)
    }

    /// Returns the size of the Secrets in which Helm stores the release.
    pub(crate) async fn stored_bytes(&self) -> Vec<usize> {
        let secrets = ["secrets", "--namespace", NAMESPACE, "--selector", "owner=helm"];
        let secrets = self.get(&secrets).await;
        secrets
            .iter()
            .map(|secret| secret["data"].to_string().len())
            .collect()
    }
}

/// Ends an operator as a kubelet does.
pub(crate) async fn stop(operator: Operator) {
    operator.expect_well();
    operator.0.signal(Signal::TERM);
    assert_eq!(operator.0.exit_code().await, 0, "{}", operator.0.text());
}

/// A column that the definitions of the version before lack.
const NEW_COLUMN: &str = ".status.ready";

pub(crate) const PREVIOUS: &str = "0.0.9";

/// Returns a chart of the version before: its definitions have a column less.
pub(crate) fn previous(plane: &ControlPlane) -> PathBuf {
    let to = plane.directory().join("previous");
    copy(&chart(), &to);
    let edit = |file: PathBuf, change: &dyn Fn(&str) -> Option<String>| {
        let text = fs::read_to_string(&file).unwrap();
        let changed: Vec<String> = text.lines().filter_map(change).collect();
        assert_ne!(changed.join("\n"), text.trim_end(), "{file:?}");
        fs::write(file, changed.join("\n") + "\n").unwrap();
    };
    let version = env!("CARGO_PKG_VERSION");
    edit(to.join("Chart.yaml"), &|line| {
        Some(line.replace(version, PREVIOUS))
    });
    for file in fs::read_dir(to.join("files/crds")).unwrap() {
        let file = file.unwrap().path();
        if file
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("kubeflow.org_")
        {
            edit(file, &|line| {
                (!line.contains(NEW_COLUMN)).then(|| line.to_owned())
            });
        }
    }
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(fs::copy(path, to.join(name)).unwrap()),
        }
    }
}
