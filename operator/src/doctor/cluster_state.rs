//! The data that was read from a cluster.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::Kind;

/// The data that was read from a cluster. Objects are unchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterState {
    /// The API server's version as major and minor number, such as `(1, 35)`.
    pub(crate) version: (u32, u32),
    /// The definitions of the current and former groups of jobs.
    pub(crate) definitions: Vec<Value>,
    /// All jobs of those groups that are served, with their kind.
    pub(crate) jobs: Vec<Value>,
    /// The configurations of validating and mutating webhooks, with their kind.
    pub(crate) webhooks: Vec<Value>,
    /// The namespaces and names of all services.
    pub(crate) services: Vec<(String, String)>,
    pub(crate) deployments: Vec<Value>,
    pub(crate) leases: Vec<Value>,
    /// The permissions that the service accounts of this operator's Deployments lack.
    pub(crate) missing_permissions: Vec<MissingPermission>,
    /// The resources that could not be read, and the reason.
    pub(crate) unreadable: Vec<(String, String)>,
}

/// A permission that a service account lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingPermission {
    /// The account's namespace and name.
    pub(crate) account: (String, String),
    /// The verb and the resource.
    pub(crate) permission: (&'static str, String),
}

/// The API groups of current and former jobs.
pub(crate) const API_GROUPS: [&str; 3] = ["kubeflow.org", "mxnet.mlkube.io", "mlkube.io"];

/// The resources of the core group, and the verbs on them that the operator needs in all namespaces with jobs.
pub(crate) const CORE_PERMISSIONS: [(&str, &[&str]); 4] = [
    ("pods", &["get", "list", "watch", "create", "patch", "delete"]),
    ("services", &["get", "list", "watch", "create", "patch", "delete"]),
    (
        "configmaps",
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    ("events", &["create", "patch"]),
];

/// The kind that is disabled by default. `manifests/mpi` adds its definition and its permissions.
pub(crate) const OPT_IN_KIND: &str = "MPIJob";

/// Returns the group, the resource and the needed verbs for each object that jobs of a kind have besides pods and
/// services.
pub(crate) fn object_permissions(kind: &Kind) -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    let [(_, all), ..] = CORE_PERMISSIONS;
    let objects = kind.framework.objects.iter().map(|object| object.kind);
    let is_other = |resource: &str| CORE_PERMISSIONS.iter().all(|(known, _)| *known != resource);
    let objects = objects.filter(|object| !object.group.is_empty() || is_other(object.plural));
    let mut permissions: Vec<_> = objects.map(|object| (object.group, object.plural, all)).collect();
    if kind.name() == OPT_IN_KIND {
        // The operator grants these permissions to the launcher, so it must have them itself. kubectl sends `create`,
        // and clients that open a WebSocket send `get`.
        permissions.push(("", "pods/exec", &["create", "get"]));
    }
    permissions
}

/// Returns the verbs that the operator needs on jobs of a kind, by subresource (with its leading `/`).
pub(crate) fn job_permissions(kind: &Kind) -> [(&'static str, &'static [&'static str]); 3] {
    let version = kind.definition().spec.versions.first();
    let schema = version.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    let spec = schema.and_then(|schema| schema.properties.as_ref()?.get("spec"));
    let fields = spec.and_then(|spec| spec.properties.as_ref());
    // Jobs without a run policy have no time to live.
    let deletes = fields.is_some_and(|fields| fields.contains_key("runPolicy"));
    let on_jobs: &[&str] = match deletes {
        true => &["list", "watch", "delete"],
        false => &["list", "watch"],
    };
    [
        ("", on_jobs),
        ("/status", &["patch"]),
        ("/finalizers", &["update"]),
    ]
}

/// The operator that a Deployment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorVariant {
    This,
    /// The Kubeflow training operator.
    Go,
    /// The stand-alone mxnet-operator, or a predecessor.
    Older,
}

/// Returns the operator that a Deployment runs. Returns `None` for other programs, and for a Deployment with 0
/// replicas.
pub(crate) fn operator_of(deployment: &Value) -> Option<OperatorVariant> {
    let spec = &deployment["spec"];
    if spec["replicas"] == 0 {
        return None;
    }
    let pod = &spec["template"]["spec"];
    let containers = pod["containers"].as_array()?;
    let account = pod["serviceAccountName"].as_str().unwrap_or_default();
    let names = |what: &str| {
        let image = |c: &Value| c["image"].as_str().is_some_and(|image| image.contains(what));
        account == what || containers.iter().any(image)
    };
    let this = |c: &Value| c["args"][0] == "run" || c["command"][0] == "training-operator";
    if names("training-operator") {
        Some(if containers.iter().any(this) {
            OperatorVariant::This
        } else {
            OperatorVariant::Go
        })
    } else {
        let older = ["mxnet-operator", "mx-operator", "tf-operator", "tf_operator"];
        older.into_iter().any(names).then_some(OperatorVariant::Older)
    }
}

/// Returns the kinds that the command line of this operator's Deployment enables.
pub(crate) fn enabled_kinds<'k>(deployment: &Value, kinds: &'k [Kind]) -> Vec<&'k Kind> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let texts = |list: &'_ Value| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let containers = containers.into_iter().flatten();
    let line: Vec<String> = containers
        .flat_map(|c| [texts(&c["command"]), texts(&c["args"])])
        .flatten()
        .collect();
    let flag = "--enable-scheme";
    let values = line
        .iter()
        .enumerate()
        .filter_map(|(n, word)| match word == flag {
            true => line.get(n + 1).map(String::as_str),
            false => word.strip_prefix(flag)?.strip_prefix('='),
        });
    let named = values.flat_map(|names| names.split(',')).filter_map(|name| {
        let spelt_so = kinds.iter().position(|kind| kind.name() == name);
        spelt_so.or_else(|| {
            kinds
                .iter()
                .position(|kind| kind.name().eq_ignore_ascii_case(name))
        })
    });
    let named: BTreeSet<usize> = named.collect();
    let wanted = |(n, _): &(usize, &Kind)| named.is_empty() || named.contains(n);
    kinds
        .iter()
        .enumerate()
        .filter(wanted)
        .map(|(_, kind)| kind)
        .collect()
}

/// Returns an object's namespace, or "" if it has none, and its name.
pub(crate) fn name(object: &Value) -> (&str, &str) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
