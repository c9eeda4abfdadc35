//! Clients of users, and their permissions.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::WAIT_TIMEOUT;
use super::control_plane::ControlPlane;
use super::users::{ADMIN, config, kubeconfig, read, write};

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

    /// Like [`kubeconfig_for_service_account`](Self::kubeconfig_for_service_account), once the account has a permission:
    /// [`wait_until_allowed`](Self::wait_until_allowed).
    pub async fn kubeconfig_once_allowed(
        &self,
        namespace: &str,
        name: &str,
        verb: &str,
        resource: &str,
    ) -> PathBuf {
        let kubeconfig = self.kubeconfig_for_service_account(namespace, name).await;
        let client = self.client_of(&kubeconfig).await;
        self.wait_until_allowed(&client, namespace, verb, resource).await;
        kubeconfig
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
