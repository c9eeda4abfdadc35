//! Jobs that need every permission of the operator.

use std::hash::{BuildHasher, RandomState};
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};
use training_job::{Settings, TrainingJob, render, validate};
use training_job_mxnet::MXJob;
use training_job_pytorch::PyTorchJob;
use training_job_testbed::cluster::{Background, ControlPlane, Program};
use training_operator_testing::manifests::find;
use training_operator_testing::operator::NO_PAGES;

use super::mpi;

/// The plural, kind, field of the replica specs, role and container of each kind.
pub(crate) const KINDS: [(&str, &str, &str, &str, &str); 6] = [
    ("mxjobs", "MXJob", "mxReplicaSpecs", "Worker", "mxnet"),
    ("tfjobs", "TFJob", "tfReplicaSpecs", "Worker", "tensorflow"),
    (
        "xgboostjobs",
        "XGBoostJob",
        "xgbReplicaSpecs",
        "Master",
        "xgboost",
    ),
    (
        "pytorchjobs",
        "PyTorchJob",
        "pytorchReplicaSpecs",
        "Worker",
        "pytorch",
    ),
    ("jaxjobs", "JAXJob", "jaxReplicaSpecs", "Worker", "jax"),
    (
        "paddlejobs",
        "PaddleJob",
        "paddleReplicaSpecs",
        "Worker",
        "paddle",
    ),
];

/// A kind of mlkube.io. Its jobs remain when they have ended.
pub(crate) struct OldKind {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    role: (&'static str, &'static str),
    pub(crate) container: &'static str,
}

pub(crate) const OLD_KINDS: [OldKind; 2] = [
    OldKind {
        group: "mxnet.mlkube.io",
        kind: "MxJob",
        plural: "mxjobs",
        role: ("mxReplicaType", "WORKER"),
        container: "mxnet",
    },
    OldKind {
        group: "mlkube.io",
        kind: "TfJob",
        plural: "tfjobs",
        role: ("tfReplicaType", "MASTER"),
        container: "tensorflow",
    },
];

impl OldKind {
    pub(crate) fn job(&self) -> Value {
        let (field, role) = self.role;
        let template = json!({"spec": {"containers": [{"name": self.container, "image": "none"}]}});
        let mut job = json!({
            "apiVersion": format!("{}/v1beta1", self.group), "kind": self.kind,
            "metadata": {"name": self.plural},
            "spec": {"RuntimeId": self.group.split('.').next(), "replicaSpecs": [{field: role, "template": template}]},
        });
        if self.kind == "MxJob" {
            job["spec"]["jobMode"] = json!("local");
        }
        job
    }
}

/// Starts the operator as the manifests do, with the credentials of their service account.
pub(crate) async fn start(cluster: &ControlPlane, objects: &[Value], namespace: &str) -> Background {
    let kubeconfig = cluster
        .kubeconfig_for_service_account(namespace, "training-operator")
        .await;
    let pod = &find(objects, "Deployment", "training-operator")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let arguments: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    let mut program = Program::new(env!("CARGO_BIN_EXE_training-operator"))
        .args(arguments)
        .args(NO_PAGES)
        // The permissions of the component mpi are also for this setting.
        .env(
            "TRAINING_OPERATOR_MPI_REMOTE_SHELL_IMAGE",
            "example.com/training-operator:1",
        )
        .env("KUBECONFIG", kubeconfig);
    for variable in container["env"].as_array().into_iter().flatten() {
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some("metadata.namespace") => namespace.to_owned(),
            // Each process is one of another pod.
            Some("metadata.uid") => format!("{:x}", RandomState::new().hash_one(namespace)),
            _ => panic!("{variable}: what would a kubelet set?"),
        };
        program = program.env(variable["name"].as_str().unwrap(), value);
    }
    cluster.spawn(program)
}

/// The permissions that the jobs exercise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shown<'a> {
    /// All permissions.
    All,
    /// The permissions on jobs of this group and plural.
    Kind(&'a str, &'a str),
    /// The permissions on ConfigMaps.
    ConfigMaps,
    /// The permissions on other objects, which all kinds share.
    Others,
}

impl Shown<'_> {
    fn has(self, group: &str, plural: &str) -> bool {
        match self {
            Self::All => true,
            Self::Kind(of, kind) => (of, kind) == (group, plural),
            Self::ConfigMaps => false,
            // The second kind has an autoscaler.
            Self::Others => group == "kubeflow.org" && ["mxjobs", "pytorchjobs"].contains(&plural),
        }
    }
}

/// Creates a job of each kind that vanishes with its objects, one whose names are taken, and two with objects of
/// another operator. Creates only those that exercise `shown`.
pub(crate) async fn create_jobs(cluster: &ControlPlane, namespace: &str, shown: Shown<'_>) {
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "taken-worker-0"},
               "spec": {"ports": [{"port": 1}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "taken-worker-0"},
               "spec": {"containers": [{"name": "foreign", "image": "none"}]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": shared(namespace, COMPACT_TAKEN)}}),
    ];
    for (plural, kind, field, role, container) in KINDS {
        if shown.has("kubeflow.org", plural) {
            objects.push(job(plural, kind, field, role, container));
        }
    }
    let old = OLD_KINDS.iter().filter(|kind| shown.has(kind.group, kind.plural));
    objects.extend(old.map(OldKind::job));
    let (compacts, others) = match shown {
        Shown::All => (true, true),
        Shown::Kind(..) => (false, false),
        Shown::ConfigMaps => (true, false),
        Shown::Others => (false, true),
    };
    if others {
        objects.push(job("taken", "MXJob", "mxReplicaSpecs", "Worker", "mxnet"));
    }
    if compacts {
        objects.extend([COMPACT, COMPACT_TAKEN].map(compact));
    }
    if shown == Shown::Others {
        // On a busy machine a time to live is over before the operator has deleted the services and the autoscaler.
        let times = objects.iter_mut();
        let times = times.filter_map(|o| o.pointer_mut("/spec/runPolicy/ttlSecondsAfterFinished"));
        times.for_each(|time| *time = Value::Null);
    }
    create(cluster, namespace, &objects).await;
    if compacts {
        create_adopted::<MXJob>(cluster, namespace, compact(COMPACT_ADOPTED), |_| {}).await;
    }
    if others {
        let (_, kind, field, role, container) = KINDS[3];
        let autoscaled = job(AUTOSCALED, kind, field, role, container);
        create_adopted::<PyTorchJob>(cluster, namespace, autoscaled, |_| {}).await;
    }
}

/// Creates a job with all its objects, none with the operator's labels, and with the objects that `add` appends. The
/// job is suspended until all objects exist.
pub(crate) async fn create_adopted<J: TrainingJob>(
    cluster: &ControlPlane,
    namespace: &str,
    mut job: Value,
    add: impl FnOnce(&mut Vec<Value>),
) {
    job["spec"]["runPolicy"]["suspend"] = json!(true);
    create(cluster, namespace, &[job.clone()]).await;
    let name = job["metadata"]["name"].as_str().unwrap().to_owned();
    let jobs: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), namespace, &ApiResource::erase::<J>(&()));
    let stored = jobs.get(&name).await.unwrap();
    job["metadata"] = json!({"name": name, "namespace": namespace, "uid": stored.uid()});
    job["spec"]["runPolicy"]["suspend"] = json!(false);
    let job: J = serde_json::from_value(job).unwrap();
    let settings = Settings::default();
    let rendered = render::all(&validate(&job, &settings).unwrap());
    let mut objects = rendered.values().unwrap();
    let mut more = objects.clone();
    for object in &mut objects {
        object["metadata"]["labels"] = Value::Null;
    }
    add(&mut more);
    objects.extend(more.split_off(objects.len()));
    create(cluster, namespace, &objects).await;
    let resume = Patch::Merge(json!({"spec": {"runPolicy": {"suspend": false}}}));
    jobs.patch(&name, &PatchParams::default(), &resume).await.unwrap();
}

/// A compact job that vanishes, one whose ConfigMap's name is taken, and one with objects of another operator. Their
/// names are long, so that the common environment of twelve pods is worth a ConfigMap.
pub(crate) const COMPACT: &str = "compact-with-a-name-of-many-letters-that-vanishes";
pub(crate) const COMPACT_TAKEN: &str = "compact-with-a-name-of-many-letters-that-is-taken";
pub(crate) const COMPACT_ADOPTED: &str = "compact-with-a-name-of-many-letters-that-is-adopted";

/// A job whose pods and autoscaler belong to another operator.
pub(crate) const AUTOSCALED: &str = "autoscaled";

fn compact(name: &str) -> Value {
    let mut job = job(name, "MXJob", "mxReplicaSpecs", "Worker", "mxnet");
    // Without a time to live, which could delete the job before the operator has deleted its ConfigMap.
    job["spec"]["runPolicy"] = json!({"cleanPodPolicy": "All", "layout": "Compact"});
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = json!(12);
    job
}

/// Returns the name of the ConfigMap of a compact job.
pub(crate) fn shared(namespace: &str, name: &str) -> String {
    let mut job = compact(name);
    job["metadata"]["namespace"] = json!(namespace);
    let job: MXJob = serde_json::from_value(job).unwrap();
    let rendered = render::all(&validate(&job, &Settings::default()).unwrap());
    rendered.objects[0].metadata.name.clone().unwrap()
}

/// Creates objects by kubectl.
pub(crate) async fn create(cluster: &ControlPlane, namespace: &str, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    cluster.create(namespace, &list).await;
}

fn job(name: &str, kind: &str, field: &str, role: &str, container: &str) -> Value {
    let mut job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1},
            field: {role: {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {
                "containers": [{"name": container, "image": "none"}],
            }}}},
        },
    });
    if kind == "MXJob" {
        job["spec"]["jobMode"] = json!("MXTrain");
    }
    if kind == "PyTorchJob" {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metrics = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
        job["spec"]["elasticPolicy"] = json!({"minReplicas": 1, "maxReplicas": 2, "metrics": metrics});
    }
    job
}

/// Makes every pod of a job succeed, forever. The waiting workers of MPIJobs run instead.
pub(crate) async fn play_kubelet(cluster: &ControlPlane, namespace: &str) {
    let kubelet = cluster.kubelet(namespace).await;
    let only = watcher::Config::default().labels("training.kubeflow.org/operator-name");
    let api: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    let mut pods = pin!(watcher(api, only).default_backoff().applied_objects());
    while let Some(pod) = pods.next().await {
        let Ok(pod) = pod else { continue };
        let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
        let label = |name: &str| pod.labels().get(name).map(String::as_str).unwrap_or_default();
        if phase != Some("Pending")
            || pod.metadata.deletion_timestamp.is_some()
            || label("training.kubeflow.org/job-name") == mpi::SCALED
        {
            continue;
        }
        let of_mpi = label("training.kubeflow.org/operator-name") == "mpijob-controller";
        match of_mpi && label("training.kubeflow.org/replica-type") == "worker" {
            true => kubelet.runs(&pod.name_any()).await,
            false => kubelet.succeeds(&pod.name_any()).await,
        }
    }
}
