//! Changes that kubelets make to pods, made by tests.

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStatus, Pod, PodCondition, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::access::NODE;
use super::control_plane::ControlPlane;
use crate::pods::terminated;

/// The delay between retries while the server is down.
const OUTAGE: Duration = Duration::from_millis(100);

/// The kubelets of all nodes, for one namespace. No node objects are needed.
#[derive(Clone)]
pub struct Kubelet {
    pub(super) api: Api<Pod>,
}

impl ControlPlane {
    /// Returns the kubelets for the pods of this namespace.
    pub async fn kubelet(&self, namespace: &str) -> Kubelet {
        let client: Client = self.client_of(&self.user(NODE)).await;
        Kubelet {
            api: Api::namespaced(client, namespace),
        }
    }
}

impl Kubelet {
    /// Returns the client of the kubelets, for bulk changes.
    pub fn client(&self) -> Client {
        self.api.clone().into_client()
    }

    /// Binds a pod to a node.
    pub async fn bind(&self, pod: &str, node: &str) {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let parameters = PostParams::default();
        let done = self
            .api
            .create_subresource("binding", pod, &parameters, &binding)
            .await;
        let _: Value = done.unwrap_or_else(|e| panic!("pod {pod} is not bound: {e}"));
    }

    /// Sets all containers running.
    pub async fn runs(&self, pod: &str) {
        self.set(pod, "Running", running).await;
    }

    /// Ends all containers with 0.
    pub async fn succeeds(&self, pod: &str) {
        self.set(pod, "Succeeded", |_, now| terminated(0, "Completed", now))
            .await;
    }

    /// Ends this container with this code, and all others with 0.
    pub async fn exits(&self, pod: &str, container: &str, code: i32) {
        self.set(pod, "Failed", |name, now| match name == container {
            true => terminated(code, "Error", now),
            false => terminated(0, "Completed", now),
        })
        .await;
    }

    /// Restarts this container, which ended with this code, within its pod.
    pub async fn restarts(&self, pod: &str, container: &str, code: i32) {
        let mut status = self.status(pod).await;
        let all = status.container_statuses.iter_mut().flatten();
        let one = all.into_iter().find(|c| c.name == container);
        let one = one.unwrap_or_else(|| panic!("container {container} of pod {pod} has not run"));
        one.restart_count += 1;
        one.last_state = Some(terminated(code, "Error", &Time(Timestamp::now())));
        self.patch(pod, &status).await;
    }

    /// Evicts the pod: it fails because of its node, without container statuses.
    pub async fn evicts(&self, pod: &str) {
        let status = PodStatus {
            phase: Some("Failed".to_owned()),
            reason: Some("Evicted".to_owned()),
            message: Some("The node was low on resource: memory.".to_owned()),
            start_time: Some(Time(Timestamp::now())),
            ..PodStatus::default()
        };
        self.patch(pod, &status).await;
    }

    /// Merges a status into the pod's status.
    pub async fn patch(&self, pod: &str, status: &PodStatus) {
        let patch = Patch::Merge(json!({ "status": status }));
        let done = self.api.patch_status(pod, &PatchParams::default(), &patch).await;
        done.unwrap_or_else(|e| panic!("status of pod {pod}: {e}"));
    }

    /// Completes a graceful deletion, as the kubelet does after a pod's processes have ended.
    pub async fn finishes_deletion(&self, pod: &str) {
        let gone = self
            .api
            .delete(pod, &DeleteParams::default().grace_period(0))
            .await;
        gone.unwrap_or_else(|e| panic!("deletion of pod {pod}: {e}"));
    }

    async fn pod(&self, pod: &str) -> Pod {
        self.api
            .get(pod)
            .await
            .unwrap_or_else(|e| panic!("pod {pod}: {e}"))
    }

    async fn status(&self, pod: &str) -> PodStatus {
        self.pod(pod).await.status.unwrap_or_default()
    }

    async fn set(&self, name: &str, phase: &str, state: impl Fn(&str, &Time) -> ContainerState) {
        let pod = self.pod(name).await;
        let status = next(pod, phase, state);
        self.patch(name, &status).await;
    }

    /// Sets all containers of an observed pod running. Retries during outages. Ignores a pod that has been removed or
    /// changed since.
    pub(super) async fn starts(&self, pod: Pod) {
        self.turn(pod, "Running", running).await;
    }

    /// Kills all containers of an observed pod, with the same retries.
    pub async fn kills(&self, pod: Pod) {
        self.turn(pod, "Failed", |_, now| terminated(137, "Error", now))
            .await;
    }

    /// Ends all containers of an observed pod with 0, with the same retries.
    pub async fn ends_well(&self, pod: Pod) {
        self.turn(pod, "Succeeded", |_, now| terminated(0, "Completed", now))
            .await;
    }

    async fn turn(&self, pod: Pod, phase: &str, state: impl Fn(&str, &Time) -> ContainerState) {
        let Some(name) = pod.metadata.name.clone() else {
            return;
        };
        let status = next(pod.clone(), phase, state);
        let only = json!({"uid": pod.metadata.uid});
        let patch = Patch::Merge(json!({ "metadata": only, "status": status }));
        let parameters = PatchParams::default();
        while !is_answered(&self.api.patch_status(&name, &parameters, &patch).await) {
            sleep(OUTAGE).await;
        }
    }

    /// Completes a graceful deletion, unless it is already complete.
    pub(super) async fn lets_go(&self, pod: &Pod) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let only = Preconditions {
            uid: pod.metadata.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams::default().grace_period(0).preconditions(only);
        while !is_answered(&self.api.delete(name, &params).await) {
            sleep(OUTAGE).await;
        }
    }
}

/// Returns true if the API server sent a response.
fn is_answered<T>(answer: &kube::Result<T>) -> bool {
    matches!(answer, Ok(_) | Err(kube::Error::Api(_)))
}

fn running(_: &str, now: &Time) -> ContainerState {
    ContainerState {
        running: Some(ContainerStateRunning {
            started_at: Some(now.clone()),
        }),
        ..ContainerState::default()
    }
}

/// Returns the status of a pod in a new phase.
fn next(pod: Pod, phase: &str, state: impl Fn(&str, &Time) -> ContainerState) -> PodStatus {
    let now = Time(Timestamp::now());
    let old = pod.status.unwrap_or_default();
    let ready = phase == "Running";
    let containers = pod
        .spec
        .into_iter()
        .flat_map(|spec| spec.containers)
        .map(|container| {
            let before = old
                .container_statuses
                .iter()
                .flatten()
                .find(|c| c.name == container.name);
            let (restart_count, last_state) =
                before.map_or((0, None), |c| (c.restart_count, c.last_state.clone()));
            let image = container.image.unwrap_or_default();
            ContainerStatus {
                state: Some(state(&container.name, &now)),
                name: container.name,
                image_id: image.clone(),
                image,
                ready,
                started: Some(ready),
                restart_count,
                last_state,
                ..ContainerStatus::default()
            }
        });
    PodStatus {
        phase: Some(phase.to_owned()),
        start_time: Some(old.start_time.unwrap_or_else(|| now.clone())),
        container_statuses: Some(containers.collect()),
        conditions: Some(vec![PodCondition {
            type_: "Ready".to_owned(),
            status: if ready { "True" } else { "False" }.to_owned(),
            last_transition_time: Some(now.clone()),
            ..PodCondition::default()
        }]),
        ..PodStatus::default()
    }
}
