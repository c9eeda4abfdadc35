//! The users of a control plane, and kubeconfigs.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

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
pub(super) fn kubeconfig(cluster: &Value, user: &str, token: &str, namespace: &str) -> Value {
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
