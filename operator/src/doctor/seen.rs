//! What was read of a cluster.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::Kind;

/// What was read of a cluster. Objects are as the API server gave them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The API server's version, such as `1.35`.
    pub(crate) version: (u32, u32),
    /// The definitions of the groups of jobs, of today and before.
    pub(crate) definitions: Vec<Value>,
    /// All jobs of those groups that are served, with their kind.
    pub(crate) jobs: Vec<Value>,
    /// The validating and mutating configurations of webhooks, with their kind.
    pub(crate) webhooks: Vec<Value>,
    /// The namespaces and names of all services.
    pub(crate) services: Vec<(String, String)>,
    /// All Deployments.
    pub(crate) deployments: Vec<Value>,
    /// All leases.
    pub(crate) leases: Vec<Value>,
    /// What the service accounts of this operator's Deployments may not do.
    pub(crate) missing: Vec<Missing>,
    /// What could not be read, and why.
    pub(crate) unread: Vec<(String, String)>,
}

/// A right that a service account has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Its namespace and name.
    pub(crate) account: (String, String),
    /// The verb and the resource.
    pub(crate) right: (&'static str, String),
}

/// The groups in which operators had jobs.
pub(crate) const GROUPS: [&str; 3] = ["kubeflow.org", "mxnet.mlkube.io", "mlkube.io"];

/// The verbs that the operator needs in all namespaces of its jobs, beside those for jobs: on which resources of the
/// core group.
pub(crate) const RIGHTS: [(&str, &[&str]); 4] = [
    ("pods", &["get", "list", "watch", "create", "patch", "delete"]),
    ("services", &["get", "list", "watch", "create", "patch", "delete"]),
    (
        "configmaps",
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    ("events", &["create"]),
];

/// The kind that no operator runs unless it is told to: its definition and its rights come apart, by `manifests/mpi`.
pub(crate) const APART: &str = "MPIJob";

/// The verbs that it needs on what jobs of a kind have beside pods and services: the group and resource.
pub(crate) fn rights_to_objects(kind: &Kind) -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    let [(_, all), ..] = RIGHTS;
    let objects = kind.framework.objects.iter().map(|object| object.kind);
    let is_apart = |resource: &str| RIGHTS.iter().all(|(known, _)| *known != resource);
    let objects = objects.filter(|object| !object.group.is_empty() || is_apart(object.plural));
    let mut rights: Vec<_> = objects.map(|object| (object.group, object.plural, all)).collect();
    if kind.name() == APART {
        // Its launcher gets these rights, which nobody can grant without having them: kubectl creates, and a client that
        // opens a WebSocket gets.
        rights.push(("", "pods/exec", &["create", "get"]));
    }
    rights
}

/// The verbs that it needs for jobs of a kind: with which subresource behind a `/`.
pub(crate) fn rights_to_jobs(kind: &Kind) -> [(&'static str, &'static [&'static str]); 3] {
    let version = kind.definition.spec.versions.first();
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

/// What a Deployment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// This operator.
    This,
    /// The Kubeflow training operator.
    Go,
    /// The stand-alone mxnet-operator, or an ancestor.
    Older,
}

/// Which operator of training jobs a Deployment runs, if it runs one and is not scaled to none.
pub(crate) fn runs(deployment: &Value) -> Option<Runs> {
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
            Runs::This
        } else {
            Runs::Go
        })
    } else {
        let older = ["mxnet-operator", "mx-operator", "tf-operator", "tf_operator"];
        older.into_iter().any(names).then_some(Runs::Older)
    }
}

/// The kinds that a Deployment of this operator runs, as its command line says.
pub(crate) fn enabled<'k>(deployment: &Value, kinds: &'k [Kind]) -> Vec<&'k Kind> {
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

/// An object's namespace, which may be none, and its name.
pub(crate) fn name(object: &Value) -> (&str, &str) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
