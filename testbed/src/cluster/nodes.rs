//! Simulated nodes, which start pods at once or when a scheduler has bound them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::pin::pin;
use std::process::Command;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::control_plane::ControlPlane;
use super::kubelet::Kubelet;
use super::process::{Background, Program};
use crate::repository;

/// The nodes of one namespace. Tests end pods with [`Kubelet`]. The nodes stop when this is dropped.
pub struct Nodes {
    attendant: JoinHandle<()>,
    starts: watch::Sender<bool>,
}

/// The start and the end of pods.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    /// Each pod starts as soon as it exists, and is removed as soon as it is deleted.
    AtOnce,
    /// A pod starts when it is bound. If it is deleted while it runs, it takes its whole grace period, and is killed
    /// then.
    Bound,
}

impl ControlPlane {
    /// Returns nodes for the pods of this namespace. Each pod starts as soon as it exists, and is removed as soon as
    /// it is deleted.
    pub async fn nodes(&self, namespace: &str) -> Nodes {
        Nodes::start(self.kubelet(namespace).await, Manner::AtOnce)
    }

    /// Returns nodes for the bound pods of this namespace. Each pod starts when it is bound. If it is deleted while
    /// it runs, it takes its whole grace period, and is killed then.
    pub async fn nodes_behind_scheduler(&self, namespace: &str) -> Nodes {
        Nodes::start(self.kubelet(namespace).await, Manner::Bound)
    }

    /// Creates a node with a server that answers `exec` and `log` for its pods by the code of a kubelet, with this
    /// variable in its environment: see `tests/control-plane/kubelet-exec`.
    pub async fn answering_node(&self, name: &str, variable: &str, value: impl AsRef<OsStr>) -> Background {
        let built = Command::new(repository().join("tests/control-plane/kubelet-exec/build.sh")).status();
        assert!(built.is_ok_and(|status| status.success()), "kubelet-exec");
        let program = Program::new(repository().join("target/kubelet-exec")).env(variable, value);
        let server = self.spawn(program);
        let line = server.wait_for_line("port ").await;
        let port: u16 = line.trim_start_matches("port ").parse().expect("a port");
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            },
        });
        self.create("default", &node).await;
        server
    }
}

impl Nodes {
    fn start(kubelet: Kubelet, manner: Manner) -> Self {
        let starts = watch::Sender::new(true);
        let attendant = tokio::spawn(attend(kubelet, manner, starts.subscribe()));
        Self { attendant, starts }
    }

    /// Sets whether pods may start from now on. Waiting pods start as soon as they may.
    pub fn start_pods(&self, may: bool) {
        self.starts.send_replace(may);
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.attendant.abort();
    }
}

async fn attend(kubelet: Kubelet, manner: Manner, starts: watch::Receiver<bool>) {
    let (mut started, mut leaving) = (BTreeSet::new(), BTreeSet::new());
    let mut work = JoinSet::new();
    let mut events = pin!(watcher(kubelet.api.clone(), watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(pod) | Event::InitApply(pod)) = event else {
            continue;
        };
        while work.try_join_next().is_some() {}
        let kubelet = kubelet.clone();
        if pod.metadata.deletion_timestamp.is_some() {
            if manner == Manner::AtOnce {
                work.spawn(async move { kubelet.lets_go(&pod).await });
            } else if leaving.insert(pod.uid()) {
                work.spawn(leave(kubelet, pod));
            }
        } else if is_new(&pod) && (manner == Manner::AtOnce || is_bound(&pod)) && started.insert(pod.uid()) {
            let mut starts = starts.clone();
            work.spawn(async move {
                // An error means that the nodes were dropped.
                if starts.wait_for(|may| *may).await.is_ok() {
                    kubelet.starts(pod).await;
                }
            });
        }
    }
}

/// Ends a deleted pod that does not end by itself, as a kubelet does.
async fn leave(kubelet: Kubelet, pod: Pod) {
    if phase(&pod) == Some("Running") {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
        sleep(Duration::from_secs(grace.try_into().unwrap_or_default())).await;
        kubelet.kills(pod.clone()).await;
    }
    kubelet.lets_go(&pod).await;
}

fn is_new(pod: &Pod) -> bool {
    matches!(phase(pod), None | Some("Pending"))
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}
