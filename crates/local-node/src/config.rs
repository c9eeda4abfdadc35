//! Settings of a node.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::devices::{Devices, missing};
use super::environment::Environment;

/// Settings of a [`Node`](super::Node).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeConfig {
    /// The node's name: pods with this `spec.nodeName` are run. Default `local`.
    pub name: String,
    /// The one namespace whose pods are run. Default `None`: all namespaces.
    pub namespace: Option<String>,
    /// The directory in which processes start. A relative `workingDir` of a container is joined to it; an absolute
    /// one that does not exist on this machine is replaced by it. Must exist. Default: the current directory.
    pub workdir: PathBuf,
    /// Directories put before `PATH`; the first one is searched first. Default: none.
    pub path: Vec<PathBuf>,
    /// A Python virtual environment. Its `bin` comes after [`path`](Self::path), and `VIRTUAL_ENV` is set. Default:
    /// none.
    pub venv: Option<PathBuf>,
    /// Variables of every process whose container does not set them itself. Default: none.
    pub env: Vec<(String, String)>,
    /// Directories of this machine for volumes of pods, by the volume's name. Paths below the mount path of such a
    /// volume are replaced in environment values, commands and arguments, as for a ConfigMap. Must exist. Default: none.
    pub mounts: BTreeMap<String, PathBuf>,
    /// The devices that pods share, by resource, such as `nvidia.com/gpu`. A pod that requests more of a resource than
    /// are free is not bound. `None`, the default: requests have no effect.
    pub devices: Option<BTreeMap<String, Devices>>,
    /// The directory for each run's output, in files `POD[.CONTAINER][.N].log`. The container is in the name only if
    /// the pod has several. N counts from 1 for further runs under the same name. With all namespaces there is one
    /// directory for each namespace. Default: output is not stored.
    pub logs: Option<PathBuf>,
    /// True to keep the output of containers until their pods are deleted, for [`Containers`](super::Containers), in the
    /// agent's own directory: at most 50 MiB for each of the last two runs of a container. Default: false.
    pub keep_output: bool,
    /// The directory for [`keep_output`](Self::keep_output), from which a later agent of the same pods continues. What it
    /// contains of pods that no longer exist is removed. Default: the agent's own directory, which ends with it.
    pub output: Option<PathBuf>,
    /// The delays before a container is restarted.
    pub restart_backoff: RestartBackoff,
    /// Functions that change the environment for many pods on one machine, by the value of the pods' label
    /// [`OPERATOR_NAME_LABEL`]. Default: none.
    pub adjust_env: BTreeMap<String, AdjustEnv>,
    /// The longest time between SIGTERM and SIGKILL, even if the pod requests more. Default: the pod's own grace
    /// period.
    pub grace_cap: Option<Duration>,
    /// The pods without a node that are bound to this one. Default: those of the default scheduler.
    pub bind: Bind,
    /// True to create a Node object, keep it ready, and remove it at shutdown. Failures to do so are logged and
    /// otherwise ignored. The object has the taint [`NODE_AGENT`], so that no scheduler places pods there that do not
    /// tolerate it. Default: false.
    pub register: bool,
}

/// The pods without a node that a [`Node`](super::Node) binds to itself, as a scheduler would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// No pods: the cluster has a scheduler that binds pods to this node.
    None,
    /// The pods of the default scheduler: nothing else binds pods to this node.
    #[default]
    DefaultScheduler,
    /// All pods, with any scheduler name: for an API without a scheduler.
    Any,
}

/// The key of the label and of the taint on the agents' Node objects. The label's value is the machine's name.
pub const NODE_AGENT: &str = "training.kubeflow.org/node-agent";

/// The condition of a pod that was stopped before it ended by itself: it was deleted, or the node shut down. Its
/// phase and exit code alone look like a failure, because a stopped process usually ends with 143.
pub const STOPPED: &str = "training.kubeflow.org/Stopped";

/// The scheduler whose pods the agent binds. Pods of another scheduler are left to that scheduler.
pub(super) const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The pod label whose value selects an entry of [`NodeConfig::adjust_env`].
pub const OPERATOR_NAME_LABEL: &str = "training.kubeflow.org/operator-name";

impl NodeConfig {
    /// Returns each resource that a pod requests more of than [`devices`](Self::devices) has, with the request and the
    /// number of devices. Such a pod is never bound.
    #[must_use]
    pub fn missing_devices(&self, pod: &Pod) -> Vec<(String, usize, usize)> {
        let devices = self.devices.as_ref();
        devices.map_or_else(Vec::new, |devices| missing(devices, pod))
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: "local".to_owned(),
            namespace: None,
            workdir: PathBuf::from("."),
            path: Vec::new(),
            venv: None,
            env: Vec::new(),
            mounts: BTreeMap::new(),
            devices: None,
            logs: None,
            keep_output: false,
            output: None,
            restart_backoff: RestartBackoff::default(),
            adjust_env: BTreeMap::new(),
            grace_cap: None,
            bind: Bind::default(),
            register: false,
        }
    }
}

/// Delays before the restarts of one container: [`first`](Self::first), then [`second`](Self::second), then twice the
/// previous delay, up to [`cap`](Self::cap). A container that has run for ten minutes starts from `first` again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartBackoff {
    /// The delay before the first restart. Default: none, as with the kubelet.
    pub first: Duration,
    /// The delay before the second restart. Default: 10 s.
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
    /// Returns the delay before a restart that has `before` restarts before it.
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

/// The pod that an [`AdjustEnv`] is called for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalPod {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The name of the container whose environment is adjusted.
    pub container: String,
    /// The pod's own loopback address.
    pub address: Ipv4Addr,
    /// The pod's labels.
    pub labels: BTreeMap<String, String>,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
    /// A program that runs a command in another pod of the namespace: `EXEC POD COMMAND...`. The command gets the
    /// environment and the directory of that pod's first container, and the input and output of its caller. The
    /// caller gets its exit code, as from `kubectl exec POD -- /bin/sh -c "COMMAND..."`. Options of ssh before the pod have
    /// no effect. The program waits up to a minute for a pod that does not run yet. The command is killed when its pod or
    /// the caller's pod ends.
    pub exec: PathBuf,
    /// A program that runs a command in this pod, as its one argument, like [`exec`](Self::exec) but always directly.
    pub enter: PathBuf,
    /// An empty directory of the pod's own, removed when the pod is deleted. It is for programs that would otherwise
    /// share files in `/tmp`.
    pub temporary: PathBuf,
    /// The directory of the files of ConfigMaps and Secrets that the pod mounts, in a directory for each volume.
    pub volumes: PathBuf,
}

/// Changes a container's environment to fit one machine, for example to set a port of its own. The function receives
/// the final environment, with names already replaced by addresses, and is called at each start of a container.
///
/// ```
/// use local_node::{AdjustEnv, NodeConfig};
///
/// let own_address: AdjustEnv = |pod, env| {
///     env.set("BIND", pod.address.to_string(), "all pods share one network here");
/// };
/// let mut config = NodeConfig::default();
/// config.adjust_env.insert("my-operator".to_owned(), own_address);
/// ```
pub type AdjustEnv = fn(&LocalPod, &mut Environment);
