//! The data that was read from a cluster.

use jiff::Timestamp;
use serde_json::Value;

/// The data that was read from a cluster. Objects are unchanged.
#[derive(Clone, Debug, Default)]
pub struct ClusterState {
    /// The API server's version as major and minor number, such as `(1, 35)`.
    pub version: (u32, u32),
    /// The API server's whole version, such as `v1.35.4`; may be empty.
    pub git_version: String,
    /// The time at which the cluster was read.
    pub now: Timestamp,
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
    /// The permissions that the user of this command lacks, as verb and resource, such as `list` and
    /// `leases.coordination.k8s.io`.
    pub forbidden: Vec<(String, String)>,
    /// The resources that could not be read for another reason, and the reason.
    pub unreadable: Vec<(String, String)>,
}

impl ClusterState {
    /// Returns true if a resource could not be read.
    pub(crate) fn is_unreadable(&self, plural: &str) -> bool {
        let is_of = |resource: &str| resource.split(['.', ' ']).next() == Some(plural);
        let forbidden = self.forbidden.iter().map(|(_, resource)| resource);
        let mut all = forbidden.chain(self.unreadable.iter().map(|(what, _)| what));
        all.any(|resource| is_of(resource))
    }
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
