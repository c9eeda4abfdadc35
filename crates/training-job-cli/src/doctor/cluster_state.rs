//! The data that was read from a cluster.

use serde_json::Value;

/// The data that was read from a cluster. Objects are unchanged.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    /// The API server's version as major and minor number, such as `(1, 35)`.
    pub version: (u32, u32),
    /// The definitions of the current and former groups of jobs.
    pub definitions: Vec<Value>,
    /// All jobs of those groups that are served, with their kind.
    pub jobs: Vec<Value>,
    /// The configurations of validating and mutating webhooks, with their kind.
    pub webhooks: Vec<Value>,
    /// The namespaces and names of all services.
    pub services: Vec<(String, String)>,
    /// All Deployments.
    pub deployments: Vec<Value>,
    /// All Leases.
    pub leases: Vec<Value>,
    /// The permissions that the service accounts of this operator's Deployments lack.
    pub missing_permissions: Vec<MissingPermission>,
    /// The resources that could not be read, and the reason.
    pub unreadable: Vec<(String, String)>,
}

/// A permission that a service account lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPermission {
    /// The account's namespace and name.
    pub account: (String, String),
    /// The verb and the resource.
    pub permission: (String, String),
}

/// Returns an object's namespace, or "" if it has none, and its name.
pub fn name(object: &Value) -> (&str, &str) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
