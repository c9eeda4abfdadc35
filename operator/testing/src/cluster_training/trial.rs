//! The environment of a test: a namespace with an operator and a node, and a share of the machine.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::json;
use tokio::sync::{OnceCell, SemaphorePermit};
use training_job_testbed::cluster::{Background, ControlPlane, Options, Program, Signal, repository};

use crate::machine::JOBS;
use crate::operator::{EVERY_KIND, NO_PAGES};
use crate::venv::venv;
use crate::{manifests, processes, program};

pub fn examples() -> PathBuf {
    repository().join("examples/mxnet")
}

/// The location of a job's programs and files.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The Python environment.
    pub venv: &'static str,
    /// The folder below `examples`.
    pub folder: &'static str,
}

/// The environment of `examples/mxnet/train.yaml`.
pub const MXNET: Surroundings = Surroundings {
    venv: "mxnet",
    folder: "mxnet",
};

/// Returns a control plane with all kinds that no test disrupts. The cluster of `TEST_KUBECONFIG` is not used,
/// because its scheduler and nodes would take the pods.
pub async fn shared() -> &'static ControlPlane {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let start = async || with_all_kinds(ControlPlane::start_at_once(Options::default()).await).await;
    SHARED.get_or_init(start).await
}

/// Returns a control plane for one test.
pub async fn fresh() -> ControlPlane {
    with_all_kinds(ControlPlane::start(Options::default()).await).await
}

async fn with_all_kinds(plane: ControlPlane) -> ControlPlane {
    plane.install_crds().await;
    plane
}

/// Returns the operator's credentials: the service account of the manifests, with permissions in this namespace only.
async fn operator_kubeconfig(plane: &ControlPlane, namespace: &str) -> PathBuf {
    let mut objects = manifests::build(plane, "namespaced", &["mpi", "mlkube"], namespace).await;
    let rights = ["ServiceAccount", "Role", "RoleBinding"];
    objects.retain(|object| rights.iter().any(|kind| object["kind"] == *kind));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    plane.create(namespace, &list).await;
    plane
        .kubeconfig_for_service_account(namespace, "training-operator")
        .await
}

/// A namespace with an operator and a node for its pods.
pub struct Trial<'a> {
    pub plane: &'a ControlPlane,
    pub namespace: String,
    pub operator: Background,
    pub node: Background,
    operator_kubeconfig: PathBuf,
    surroundings: Surroundings,
    _share: SemaphorePermit<'static>,
}

impl<'a> Trial<'a> {
    /// Waits until the machine has capacity for one more job, and starts all processes.
    pub async fn new(plane: &'a ControlPlane, name: &str, surroundings: Surroundings) -> Self {
        let share = JOBS.acquire().await.unwrap();
        let namespace = plane.namespace(name).await;
        let operator_kubeconfig = operator_kubeconfig(plane, &namespace).await;
        Self {
            operator: start_operator(plane, &namespace, &operator_kubeconfig),
            operator_kubeconfig,
            node: start_node(plane, &namespace, surroundings),
            plane,
            namespace,
            surroundings,
            _share: share,
        }
    }

    /// Starts a trial on the shared control plane.
    pub async fn shared(name: &str, surroundings: Surroundings) -> Trial<'static> {
        Trial::new(shared().await, name, surroundings).await
    }

    #[track_caller]
    pub fn kubectl<'b>(&'b self, arguments: &[&'b str]) -> impl Future<Output = String> + use<'a, 'b> {
        let all: Vec<&str> = ["--namespace", &self.namespace]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        async move { self.plane.kubectl(&all).await.success() }
    }

    /// Creates an object from YAML or JSON.
    pub async fn create(&self, manifest: &str) {
        self.plane.create(&self.namespace, manifest).await;
    }

    /// Returns the process ID of the node.
    pub fn agent(&self) -> u32 {
        self.node.pid().as_raw_nonzero().get().try_into().unwrap()
    }

    /// Sends a signal to the process of a pod.
    pub fn signal_pod(&self, pod: &str, signal: Signal) {
        send(processes::of_pod(self.agent(), pod), signal);
    }

    /// Sends a signal to the process of a pod that has started the others.
    pub fn signal_first_of_pod(&self, pod: &str, signal: Signal) {
        send(processes::first_of_pod(self.agent(), pod), signal);
    }

    /// Waits until a worker has completed its first step.
    pub async fn mid_training(&self) {
        self.node.wait_for_line(" | step=1 rank=").await;
    }

    /// Kills the operator and starts another.
    pub async fn replace_operator(&mut self) {
        self.operator.signal(Signal::KILL);
        self.operator.exit_code().await;
        self.operator = start_operator(self.plane, &self.namespace, &self.operator_kubeconfig);
    }

    /// Kills the node's agent and starts another once its processes have ended.
    pub async fn replace_node(&mut self) {
        let killed = self.agent();
        self.node.signal(Signal::KILL);
        self.node.exit_code().await;
        processes::expect_gone(killed);
        self.node = start_node(self.plane, &self.namespace, self.surroundings);
    }

    /// Ends the operator and the node. No process may remain.
    pub async fn end(self) {
        self.operator.signal(Signal::TERM);
        assert_eq!(self.operator.exit_code().await, 0, "{}", self.operator.text());
        self.node.signal(Signal::TERM);
        assert_eq!(self.node.exit_code().await, 0, "{}", self.node.text());
        let left = processes::of_run(self.agent());
        assert!(left.is_empty(), "{left:?}\n{}", self.node.text());
        let nodes: Api<Node> = Api::all(self.plane.client());
        assert_eq!(nodes.get_opt(&node_name(&self.namespace)).await.unwrap(), None);
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn start_operator(plane: &ControlPlane, namespace: &str, kubeconfig: &Path) -> Background {
    let program = Program::new(program::path())
        .args(["run", "--namespace", namespace, EVERY_KIND])
        .args(NO_PAGES)
        .args([Path::new("--kubeconfig"), kubeconfig]);
    plane.spawn(program)
}

/// Returns the command `training-operator local node` with the administrator's credentials.
pub fn node(plane: &ControlPlane, name: &str, namespace: &str) -> Program {
    Program::new(program::path())
        .args(["local", "node", "--name", name, "--namespace", namespace])
        .args(["--kubeconfig".into(), plane.kubeconfig()])
}

fn start_node(plane: &ControlPlane, namespace: &str, surroundings: Surroundings) -> Background {
    let program = node(plane, &node_name(namespace), namespace)
        .args(["--venv".into(), venv(surroundings.venv)])
        .args([
            "--workdir".into(),
            repository().join("examples").join(surroundings.folder),
        ]);
    plane.spawn(program)
}

fn node_name(namespace: &str) -> String {
    format!("local-{namespace}")
}
