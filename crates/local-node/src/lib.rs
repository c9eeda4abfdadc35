//! A Kubernetes node agent that runs pods as processes of this machine: no container, no root.
//!
//! [`Node`] does the work of a kubelet (and of the scheduler) on a laptop or in a test. It binds pods to itself, runs
//! their containers' commands as processes of the user who runs it, and reports their states to the API. The API may
//! be that of a cluster, or one in memory:
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::{Api, api::PostParams};
//! use local_node::{Node, NodeConfig, NodeEvent};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! // Any client will do. This one talks to an API server in memory.
//! let client = kube_memory::Cluster::new().client("default");
//! let (send, mut events) = tokio::sync::mpsc::channel(1_000);
//! let node = Node::start(client.clone(), NodeConfig::default(), send).unwrap();
//!
//! let pod: Pod = serde_json::from_value(json!({
//!     "metadata": {"name": "demo"},
//!     "spec": {"restartPolicy": "Never", "containers": [{
//!         "name": "main", "image": "not pulled", "command": ["echo", "hello"],
//!     }]},
//! })).unwrap();
//! let pods: Api<Pod> = Api::default_namespaced(client);
//! pods.create(&PostParams::default(), &pod).await.unwrap();
//!
//! let mut lines = Vec::new();
//! while let Some(event) = events.recv().await {
//!     match event {
//!         NodeEvent::Log(line) => lines.push(line.text),
//!         NodeEvent::Phase(phase) if phase.phase == "Succeeded" => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!(lines, ["hello"]);
//! node.kill();
//! # });
//! ```
//!
//! # Differences from a cluster
//!
//! * Images are not pulled. A container needs a `command`, which finds this machine's programs ([`NodeConfig::path`],
//!   [`NodeConfig::venv`]).
//! * Each pod name has a loopback address of its own. The names of services, and of the pods of the same controller,
//!   are replaced by these addresses in environment values, commands and arguments: [`Environment`]. Values of
//!   `metadata` fields stay names.
//! * Files of mounted ConfigMaps and Secrets are in the pod's folder, and paths in environment values, commands and
//!   arguments are replaced. The same holds for volumes that get a directory of this machine ([`NodeConfig::mounts`]).
//!   Other volumes, resources, probes and security contexts have no effect.
//! * Pods share the devices of this machine by their requests, or get none ([`NodeConfig::devices`]).
//! * Other changes that a program needs on one machine are made by a function in [`NodeConfig::adjust_env`].
//!
//! Each difference for a container is reported before the container starts: [`NodeEvent::Prepared`].
//!
//! # No process is left behind
//!
//! Every container has a process group of its own. The group is killed when the container's first process ends, when
//! the pod is deleted, when the agent ends, and, by a guard process, when the agent is killed. Children that left the
//! group are found by a variable in their environment.
//!
//! # Modules
//!
//! A pod passes through these modules. `node` watches. `dispatcher` gives each pod a task. `pod_task` takes the next
//! step from `lifecycle` (pure) and the command to run from `prepare` (pure). `process` runs the command. `status`
//! (pure) computes the pod's status, and `report` delivers the status to the API.

mod addresses;
mod agent;
mod api;
mod config;
mod container;
mod containers;
mod devices;
mod dispatcher;
mod env_values;
mod environment;
mod event;
mod exec;
mod guard;
mod host_names;
mod kill;
mod launch;
mod lifecycle;
mod logs;
mod node;
mod node_object;
mod output;
mod pod_task;
mod prepare;
mod process;
mod recovery;
mod references;
mod report;
mod resources;
mod restart;
mod status;
mod volumes;

pub use config::{
    AdjustEnv, Bind, LocalPod, NODE_AGENT, NodeConfig, OPERATOR_NAME_LABEL, RestartBackoff, STOPPED,
};
pub use containers::{ContainerError, Containers, ExecCommand};
pub use devices::{Devices, devices_of_this_machine};
pub use environment::{Difference, Environment, PodPart};
pub use event::{LogLine, LogLost, NodeEvent, PodPhase, Prepared, Stream};
pub use kill::{adopt_orphans, end_orphans};
pub use node::{Node, NodeError};
pub use node_object::{NodeNameError, check_node_name, default_node_name};
pub use output::{LogFormatter, LogOptions, OutputEntry, OutputReader};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
