//! The node agent: pods as local processes.
//!
//! [`Node`] takes the part of a kubelet (and of the scheduler) for a laptop or a test: it binds pods to itself, runs
//! their containers' commands as processes of the user who runs it, and reports their states to the API, which may be a
//! real one or the in-memory one. No container, no root and no network namespace is needed. [`Jobs`] runs jobs without
//! any cluster: the in-memory API, the operator and a node in one process.
//!
//! The way of a pod: [`Node`] watches; `dispatch` gives each pod a task; `pod_task` asks `lifecycle` (pure) what to do
//! next, `prepare` (pure) what to run, `process` runs it, and `report` brings what `status` (pure) makes of it to the API.
//!
//! # What is different from a cluster
//!
//! * Images are not pulled: a container needs a `command`, and finds this machine's programs
//!   ([`NodeConfig::path`], [`NodeConfig::venv`]).
//! * Each pod name has a loopback address of its own, and the names of services and of the pods of the same controller
//!   are replaced by these addresses in environment values, commands and arguments: [`Environment`]. Values of
//!   `metadata` fields stay names.
//! * Volumes, resources, probes and security contexts have no effect. Each such thing is told before a container starts:
//!   [`NodeEvent::Prepared`].
//! * What else a framework needs on one machine is a function in [`NodeConfig::adjust_env`].
//!
//! # No process is left behind
//!
//! Every container has a process group of its own. It is killed when the container's first process ends, when the pod is
//! deleted, when the agent ends, and, by a guard process, when the agent is killed. Children that left the group are
//! found by a variable in their environment.

mod addresses;
mod agent;
mod api;
mod config;
mod container;
mod dispatcher;
mod env_values;
mod environment;
mod event;
mod guard;
mod host_names;
#[cfg(feature = "jobs")]
mod jobs;
mod kill;
mod lifecycle;
mod logs;
mod node;
mod node_object;
mod pod_task;
mod prepare;
mod process;
mod recovery;
mod references;
mod report;
mod resources;
mod status;

pub use config::{AdjustEnv, Bind, LocalPod, NODE_AGENT, NodeConfig, OPERATOR_NAME_LABEL, RestartBackoff};
pub use environment::{Difference, Environment, PodPart};
pub use event::{LogLine, NodeEvent, PodPhase, Prepared, Stream};
#[cfg(feature = "jobs")]
pub use jobs::{Jobs, Run, RunError, RunEvent, main};
pub use node::{Node, NodeError};
pub use node_object::{NodeNameError, check_node_name, default_node_name};
