//! Changes that kubelets make to pods, made by tests.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};
use tokio::time::sleep;
use training_job_testing::PodScript;

use super::control_plane::ControlPlane;
use super::users::NODE;

/// The delay between retries while the server is down.
const RETRY_DELAY: Duration = Duration::from_millis(100);

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
        self.write(pod, |script| script.runs()).await;
    }

    /// Ends all containers with 0.
    pub async fn succeeds(&self, pod: &str) {
        self.write(pod, |script| script.succeeds()).await;
    }

    /// Ends this container with this code, and all others with 0.
    pub async fn exits(&self, pod: &str, container: &str, code: i32) {
        let code = |name: &str| if name == container { code } else { 0 };
        self.write(pod, |script| script.fails(code)).await;
    }

    /// Restarts this container, which ended with this code, within its pod.
    pub async fn restarts(&self, pod: &str, container: &str, code: i32) {
        self.write(pod, |script| script.restarts(container, code)).await;
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

    async fn write(&self, name: &str, status: impl FnOnce(PodScript<'_>) -> PodStatus) {
        let pod = self.pod(name).await;
        let status = status(PodScript::new(&pod, Timestamp::now()));
        self.patch(name, &status).await;
    }

    /// Sets all containers of an observed pod running. Retries during outages. Ignores a pod that has been removed or
    /// changed since.
    pub(super) async fn starts(&self, pod: Pod) {
        self.write_observed(pod, |script| script.runs()).await;
    }

    /// Kills all containers of an observed pod, with the same retries.
    pub async fn kills(&self, pod: Pod) {
        self.write_observed(pod, |script| script.fails(|_| 137)).await;
    }

    /// Ends all containers of an observed pod with 0, with the same retries.
    pub async fn ends_well(&self, pod: Pod) {
        self.write_observed(pod, |script| script.succeeds()).await;
    }

    async fn write_observed(&self, pod: Pod, status: impl FnOnce(PodScript<'_>) -> PodStatus) {
        let Some(name) = pod.metadata.name.clone() else {
            return;
        };
        let status = status(PodScript::new(&pod, Timestamp::now()));
        let only = json!({"uid": pod.metadata.uid});
        let patch = Patch::Merge(json!({ "metadata": only, "status": status }));
        let parameters = PatchParams::default();
        while !is_answered(&self.api.patch_status(&name, &parameters, &patch).await) {
            sleep(RETRY_DELAY).await;
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
            sleep(RETRY_DELAY).await;
        }
    }
}

/// Returns true if the API server sent a response.
fn is_answered<T>(answer: &kube::Result<T>) -> bool {
    matches!(answer, Ok(_) | Err(kube::Error::Api(_)))
}
