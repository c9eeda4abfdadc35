//! The clients of users on a real API server, and kubectl on a local cluster.

mod applied;
mod forward_proxy;
mod kubeconfigs;
mod kubectl;
mod local_access;
mod local_cluster;
mod local_kubectl;
mod local_programs;
mod plugin;
mod sdk;
mod stage;
