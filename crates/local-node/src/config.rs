//! Settings of a node.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;

/// Settings of a [`Node`](super::Node).
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node's name: pods with this `spec.nodeName` are run. Default `local`.
    pub name: String,
    /// The one namespace whose pods are run. Default `None`: all namespaces.
    pub namespace: Option<String>,
    /// Where processes start. A relative `workingDir` of a container is joined to it; an absolute one that does not
    /// exist on this machine is replaced by it. Must exist. Default: the current directory.
    pub workdir: PathBuf,
    /// Directories put before `PATH`, the first to be searched first. Default: none.
    pub path: Vec<PathBuf>,
    /// A Python virtual environment: its `bin` comes after [`path`](Self::path), and `VIRTUAL_ENV` is set. Default: none.
    pub venv: Option<PathBuf>,
    /// Where each run's output is kept as `POD[.CONTAINER][.N].log`: the container only where a pod has several, N from
    /// 1 for further runs under the same name. With all namespaces there is one directory for each. Default: not kept.
    pub logs: Option<PathBuf>,
    /// How long to wait before a container is restarted.
    pub restart_backoff: RestartBackoff,
    /// Functions that change the environment where many pods share one machine, by the value of the pods' label
    /// [`OPERATOR_NAME_LABEL`]. Default: none.
    pub adjust_env: BTreeMap<String, AdjustEnv>,
    /// The longest time between SIGTERM and SIGKILL, whatever the pod asks for. Default: what the pod asks for.
    pub grace_cap: Option<Duration>,
    /// Which pods without a node are bound to this one. Default: those of the default scheduler.
    pub bind: Bind,
    /// Whether to create a Node object, keep it ready, and remove it at shutdown. Failure to do so is logged and
    /// otherwise ignored. It has the taint [`NODE_AGENT`], so that no scheduler puts pods there that do not ask for it.
    /// Default: no.
    pub register: bool,
}

/// Which pods without a node a [`Node`](super::Node) takes, as a scheduler would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// None: the cluster has a scheduler that binds pods to this node.
    None,
    /// Those of the default scheduler: nobody else binds pods to this node.
    #[default]
    DefaultScheduler,
    /// All, whatever scheduler they name: for an API without any scheduler.
    Any,
}

/// The key of the label and of the taint of the Node objects that agents make. The label's value is the machine's name.
pub const NODE_AGENT: &str = "training.kubeflow.org/node-agent";

/// The condition of a pod that was stopped before it ended by itself: it was deleted, or the node shut down. Its phase
/// and exit code alone do not tell that from a failure, as a process that is stopped usually ends with 143.
pub const STOPPED: &str = "training.kubeflow.org/Stopped";

/// The scheduler whose pods the agent binds: pods of another scheduler are left to it.
pub(super) const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The pod label whose value selects an entry of [`NodeConfig::adjust_env`].
pub const OPERATOR_NAME_LABEL: &str = "training.kubeflow.org/operator-name";

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: "local".to_owned(),
            namespace: None,
            workdir: PathBuf::from("."),
            path: Vec::new(),
            venv: None,
            logs: None,
            restart_backoff: RestartBackoff::default(),
            adjust_env: BTreeMap::new(),
            grace_cap: None,
            bind: Bind::default(),
            register: false,
        }
    }
}

/// Delays before the restarts of one container: [`first`](Self::first), then [`second`](Self::second), then twice the one
/// before, up to [`cap`](Self::cap). A container that has run for ten minutes starts from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartBackoff {
    /// Before the first restart. Default: none, as with the kubelet.
    pub first: Duration,
    /// Before the second restart. Default: 10 s.
    pub second: Duration,
    /// The longest delay. Default: 300 s.
    pub cap: Duration,
}

impl Default for RestartBackoff {
    fn default() -> Self {
        Self {
            first: Duration::ZERO,
            second: Duration::from_secs(10),
            cap: Duration::from_secs(300),
        }
    }
}

impl RestartBackoff {
    /// The delay before a restart that has `before` restarts before it.
    #[must_use]
    pub fn delay(&self, before: u32) -> Duration {
        match before {
            0 => self.first.min(self.cap),
            _ => self
                .second
                .saturating_mul(2u32.saturating_pow(before - 1))
                .min(self.cap),
        }
    }
}

/// What an [`AdjustEnv`] gets to know about the pod.
#[derive(Clone, Debug)]
pub struct LocalPod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The container whose environment it is.
    pub container: String,
    /// The pod's own loopback address.
    pub address: Ipv4Addr,
    /// The pod's labels.
    pub labels: BTreeMap<String, String>,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
    /// A program that runs a command in another pod of the namespace: `EXEC POD COMMAND...`. The command gets the
    /// environment and the directory of that pod's first container, and the input and output of its caller, which gets its
    /// exit code, as from `kubectl exec POD -- /bin/sh -c "COMMAND..."`. A pod that does not run yet is awaited for a
    /// minute. When the pod or the caller's ends, the command is killed.
    pub exec: PathBuf,
    /// An empty directory of the pod's own, removed when the pod is deleted: for programs that would share what lies in
    /// `/tmp`.
    pub temporary: PathBuf,
}

/// Changes a container's environment to what its program needs on one machine, such as a port of its own. It gets the
/// final environment, with names already replaced by addresses, and is called at each start of a container.
///
/// ```
/// use local_node::{AdjustEnv, NodeConfig};
///
/// let own_address: AdjustEnv = |pod, env| {
///     env.set("BIND", pod.address.to_string(), "all pods share one network here");
/// };
/// let config = NodeConfig {
///     adjust_env: [("my-operator".to_owned(), own_address)].into(),
///     ..NodeConfig::default()
/// };
/// ```
pub type AdjustEnv = fn(&LocalPod, &mut Environment);
