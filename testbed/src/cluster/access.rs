//! Users and their kubeconfigs.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::WAIT_TIMEOUT;
use super::control_plane::ControlPlane;

/// The user that tests act as.
pub(super) const ADMIN: &str = "admin";
/// The user of the controller manager.
pub(super) const MANAGER: &str = "test-controller-manager";
/// The user of [`Kubelet`](super::Kubelet).
pub(super) const NODE: &str = "test-kubelet";

/// Writes the API server's token file, and a kubeconfig for each user.
pub(super) fn write_users(directory: &Path, cluster: &Value) -> io::Result<()> {
    let mut tokens = String::new();
    for user in [ADMIN, MANAGER, NODE] {
        // The standard library's hash keys are the only available random numbers, and sufficient here.
        let token: String = (0..2)
            .map(|n| format!("{:016x}", RandomState::new().hash_one(n)))
            .collect();
        tokens += &format!("{token},{user},{user},system:masters\n");
        let file = directory.join(format!("{user}.kubeconfig"));
        write(&file, &kubeconfig(cluster, user, &token, "default"))?;
    }
    fs::write(directory.join("tokens.csv"), tokens)
}

/// Returns a kubeconfig with one context.
fn kubeconfig(cluster: &Value, user: &str, token: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": namespace}}],
    })
}

/// Writes a kubeconfig as JSON, which is also valid YAML.
pub(super) fn write(file: &Path, kubeconfig: &Value) -> io::Result<()> {
    fs::write(file, kubeconfig.to_string())
}

/// Returns the client configuration of a kubeconfig.
pub(super) async fn config(kubeconfig: &Path) -> Result<Config, String> {
    let read = Kubeconfig::read_from(kubeconfig).map_err(|e| e.to_string())?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.map_err(|e| e.to_string())
}

/// Reads a kubeconfig as JSON.
pub(super) fn read(file: &Path) -> Value {
    let kubeconfig = Kubeconfig::read_from(file).expect("a kubeconfig");
    serde_json::to_value(kubeconfig).expect("it is data")
}

impl ControlPlane {
    /// Returns the path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.user(ADMIN)
    }

    /// Returns the path of an administrator's kubeconfig with a context in this namespace.
    pub fn kubeconfig_in(&self, namespace: &str) -> PathBuf {
        let mut kubeconfig = read(&self.kubeconfig());
        let current = kubeconfig["current-context"].clone();
        for context in kubeconfig["contexts"].as_array_mut().into_iter().flatten() {
            if context["name"] == current {
                context["context"]["namespace"] = json!(namespace);
            }
        }
        self.write_kubeconfig(&kubeconfig)
    }

    /// Returns the path of a kubeconfig with a token of an existing service account, valid for an hour. Its context
    /// is in the service account's namespace.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> PathBuf {
        let api: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(3600),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let made = api
            .create_token_request(name, &PostParams::default(), &request)
            .await;
        let made = made.unwrap_or_else(|e| panic!("no token for service account {namespace}/{name}: {e}"));
        let token = made
            .status
            .and_then(|status| status.token)
            .expect("an answer has a token");
        let admin = read(&self.kubeconfig());
        self.write_kubeconfig(&kubeconfig(&current_cluster(&admin), name, &token, namespace))
    }

    /// Returns a new client of the administrator. A client is bound to the runtime, and thereby to the test, that
    /// created it.
    pub fn client(&self) -> Client {
        Client::try_from(self.config.clone()).expect("a client")
    }

    /// Returns a new client of the user in a kubeconfig.
    pub async fn client_of(&self, kubeconfig: &Path) -> Client {
        let config = config(kubeconfig).await.expect("a kubeconfig");
        Client::try_from(config).expect("a client")
    }

    /// Waits until a client has a permission in a namespace, such as `create`, `pods`, or `get`, `pods/log`, or `patch`,
    /// `mxjobs.kubeflow.org`. The API server applies roles some milliseconds after it has stored them, and sends no
    /// signal.
    pub async fn wait_until_allowed(&self, client: &Client, namespace: &str, verb: &str, resource: &str) {
        self.wait_for_right(client, namespace, verb, resource, true).await;
    }

    /// Waits until a client no longer has a permission in a namespace.
    pub async fn wait_until_refused(&self, client: &Client, namespace: &str, verb: &str, resource: &str) {
        self.wait_for_right(client, namespace, verb, resource, false)
            .await;
    }

    async fn wait_for_right(
        &self,
        client: &Client,
        namespace: &str,
        verb: &str,
        resource: &str,
        right: bool,
    ) {
        let (whole, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (plural, group) = whole.split_once('.').unwrap_or((whole, ""));
        let review = json!({"spec": {"resourceAttributes": {
            "namespace": namespace, "verb": verb, "resource": plural, "group": group, "subresource": subresource,
        }}});
        let review: SelfSubjectAccessReview = serde_json::from_value(review).expect("it is a review");
        let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let answer = api
                .create(&PostParams::default(), &review)
                .await
                .expect("all may ask");
            if answer.status.is_some_and(|status| status.allowed == right) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "allowed in {WAIT_TIMEOUT:?}: still {}: {verb} {resource} in {namespace}",
                !right
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the path of the kubeconfig of a control plane user. In an existing cluster, all users share the
    /// administrator's kubeconfig.
    pub(super) fn user(&self, user: &str) -> PathBuf {
        let user = if self.own.is_some() { user } else { ADMIN };
        self.directory.path().join(format!("{user}.kubeconfig"))
    }

    pub(super) fn write_kubeconfig(&self, kubeconfig: &Value) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = self.directory.path().join(format!("{count}.kubeconfig"));
        write(&file, kubeconfig).expect("the directory is ours");
        file
    }
}

fn current_cluster(kubeconfig: &Value) -> Value {
    let find = |list: &str, name: &Value| {
        let all = kubeconfig[list].as_array()?;
        all.iter().find(|entry| entry["name"] == *name).cloned()
    };
    let context = find("contexts", &kubeconfig["current-context"]).expect("a current context");
    find("clusters", &context["context"]["cluster"]).expect("its cluster")["cluster"].clone()
}
