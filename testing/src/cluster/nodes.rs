//! Nodes that start every pod at once.

use std::collections::BTreeSet;
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::task::{JoinHandle, JoinSet};

use super::control_plane::ControlPlane;
use super::kubelet::Kubelet;

/// Nodes for one namespace: each pod runs as soon as it is there, and goes as soon as it is deleted.
/// How it ends is up to the test, by [`Kubelet`]. They stop when this is dropped.
pub struct Nodes(JoinHandle<()>);

impl ControlPlane {
    /// Nodes for the pods of this namespace.
    pub async fn nodes(&self, namespace: &str) -> Nodes {
        let kubelet = self.kubelet(namespace).await;
        Nodes(tokio::spawn(attend(kubelet)))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn attend(kubelet: Kubelet) {
    let mut started = BTreeSet::new();
    let mut work = JoinSet::new();
    let mut events = pin!(watcher(kubelet.api.clone(), watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(pod) | Event::InitApply(pod)) = event else {
            continue;
        };
        while work.try_join_next().is_some() {}
        let kubelet = kubelet.clone();
        if pod.metadata.deletion_timestamp.is_some() {
            work.spawn(async move { kubelet.lets_go(&pod).await });
        } else if is_new(&pod) && started.insert(pod.uid()) {
            work.spawn(async move { kubelet.starts(pod).await });
        }
    }
}

fn is_new(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, None | Some("Pending"))
}
