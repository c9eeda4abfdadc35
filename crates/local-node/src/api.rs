//! The requests that the agent makes to the Kubernetes API.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{
    Binding, ConfigMap, Node, ObjectReference, Pod, PodStatus, Secret, Service,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use kube_follow::CallError;
use serde_json::{Value, json};

use super::env_values::{ConfigEntries, ConfigRef};

/// The timeout of every request. The API of a dead machine must not delay the end of a process.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum number of services that are read one by one. Above it, the namespace is listed.
const MAX_SINGLE_READS: usize = 32;

/// One pod, by name and UID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodRef {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl PodRef {
    pub(super) fn from_pod(pod: &Pod) -> Self {
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
        }
    }
}

/// The reason that a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// The object is missing, or another object has its name.
    #[error("it is gone")]
    Gone,
    /// The object is not in the state that the request expects.
    #[error("{0}")]
    Conflict(String),
    /// Any other failure; the request may be retried.
    #[error("{0}")]
    Failed(String),
    /// The API server is away, which is logged once for all requests.
    #[error("the API server is away")]
    Away,
}

impl ApiError {
    /// Logs that a request for a pod is made again, and waits. If the server is away, the request itself waits.
    pub(super) async fn before_retry(&self, pod: &str, request: &str, delay: Duration) {
        if !matches!(self, Self::Away) {
            tracing::warn!(pod, error = %self, "cannot {request}, trying again");
            tokio::time::sleep(delay).await;
        }
    }
}

/// A service that selects pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceRef {
    pub(super) name: String,
    pub(super) selector: BTreeMap<String, String>,
}

impl ServiceRef {
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut selector = self.selector.iter();
        selector.all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// The requests that the agent sends.
#[async_trait]
pub(super) trait PodApi: Send + Sync + 'static {
    async fn bind(&self, pod: &PodRef, node: &str) -> Result<(), ApiError>;
    async fn report(&self, pod: &PodRef, status: &PodStatus) -> Result<(), ApiError>;
    /// Removes the pod at once. Its processes must have ended.
    async fn delete(&self, pod: &PodRef) -> Result<(), ApiError>;
    /// Returns the services of these names that select pods.
    async fn services(&self, namespace: &str, names: &BTreeSet<String>) -> Result<Vec<ServiceRef>, ApiError>;
    /// Returns the entries of a ConfigMap or Secret, or `None` if it does not exist.
    async fn contents(&self, namespace: &str, store: &ConfigRef) -> Result<Option<ConfigEntries>, ApiError>;
    /// Creates the node or updates its status.
    async fn register(&self, node: &Node) -> Result<(), ApiError>;
    async fn unregister(&self, node: &str) -> Result<(), ApiError>;
}

/// The API of a client.
pub(super) struct KubeApi {
    client: Client,
}

impl KubeApi {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Converts a conflict to [`ApiError::Gone`] if the pod no longer exists. A new pod of the same name has another
    /// UID, and causes the same conflict as a concurrent write.
    async fn resolve_conflict<T>(&self, pod: &PodRef, response: Result<T, ApiError>) -> Result<(), ApiError> {
        let Err(ApiError::Conflict(_)) = &response else {
            return response.map(|_| ());
        };
        match with_timeout(self.pods(&pod.namespace).get_opt(&pod.name)).await? {
            Some(found) if found.uid().as_deref() == Some(pod.uid.as_str()) => response.map(|_| ()),
            _ => Err(ApiError::Gone),
        }
    }
}

pub(super) async fn with_timeout<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() => Err(ApiError::Gone),
        Ok(Err(kube::Error::Api(status))) if status.is_conflict() => Err(ApiError::Conflict(status.message)),
        Ok(Err(error)) => Err(match CallError::from(error) {
            CallError::Away => ApiError::Away,
            other => ApiError::Failed(other.to_string()),
        }),
        Err(_) => Err(ApiError::Failed(format!(
            "no response from the API within {} s",
            REQUEST_TIMEOUT.as_secs()
        ))),
    }
}

#[async_trait]
impl PodApi for KubeApi {
    async fn bind(&self, pod: &PodRef, node: &str) -> Result<(), ApiError> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(pod.name.clone()),
                namespace: Some(pod.namespace.clone()),
                uid: Some(pod.uid.clone()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let pods = self.pods(&pod.namespace);
        let params = PostParams::default();
        with_timeout(pods.create_subresource::<_, Value>("binding", &pod.name, &params, &binding))
            .await
            .map(|_| ())
    }

    async fn report(&self, pod: &PodRef, status: &PodStatus) -> Result<(), ApiError> {
        // The UID makes the server reject the patch if the name belongs to another pod by now.
        let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid}, "status": status}));
        let pods = self.pods(&pod.namespace);
        let response = with_timeout(pods.patch_status(&pod.name, &PatchParams::default(), &patch)).await;
        self.resolve_conflict(pod, response).await
    }

    async fn delete(&self, pod: &PodRef) -> Result<(), ApiError> {
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(pod.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let response = with_timeout(self.pods(&pod.namespace).delete(&pod.name, &params)).await;
        self.resolve_conflict(pod, response).await
    }

    async fn services(&self, namespace: &str, names: &BTreeSet<String>) -> Result<Vec<ServiceRef>, ApiError> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let found: Vec<Service> = if names.len() <= MAX_SINGLE_READS {
            let reads = names.iter().map(|name| with_timeout(services.get_opt(name)));
            try_join_all(reads).await?.into_iter().flatten().collect()
        } else {
            with_timeout(services.list(&ListParams::default())).await?.items
        };
        // A service without a selector (such as `kubernetes`) has no pods.
        let selecting = found.into_iter().filter_map(|service| {
            let name = service.name_any();
            names.get(&name)?;
            let selector = service.spec?.selector.filter(|selector| !selector.is_empty())?;
            Some(ServiceRef { name, selector })
        });
        Ok(selecting.collect())
    }

    async fn contents(&self, namespace: &str, store: &ConfigRef) -> Result<Option<ConfigEntries>, ApiError> {
        match store {
            ConfigRef::ConfigMap(name) => {
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
                Ok(with_timeout(api.get_opt(name)).await?.map(|found| {
                    let texts = found.data.unwrap_or_default().into_iter();
                    let texts = texts.map(|(key, text)| (key, text.into_bytes()));
                    let binary = found.binary_data.unwrap_or_default().into_iter();
                    texts.chain(binary.map(|(key, bytes)| (key, bytes.0))).collect()
                }))
            }
            ConfigRef::Secret(name) => {
                let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
                Ok(with_timeout(api.get_opt(name)).await?.map(|found| {
                    let data = found.data.unwrap_or_default().into_iter();
                    data.map(|(key, bytes)| (key, bytes.0)).collect()
                }))
            }
        }
    }

    async fn register(&self, node: &Node) -> Result<(), ApiError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = node.name_any();
        let patch = Patch::Merge(json!({"status": node.status}));
        let params = PatchParams::default();
        let update = || with_timeout(nodes.patch_status(&name, &params, &patch));
        match update().await {
            Err(ApiError::Gone) => {
                with_timeout(nodes.create(&PostParams::default(), node)).await?;
                update().await.map(|_| ())
            }
            other => other.map(|_| ()),
        }
    }

    async fn unregister(&self, node: &str) -> Result<(), ApiError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        with_timeout(nodes.delete(node, &DeleteParams::default()))
            .await
            .map(|_| ())
    }
}
