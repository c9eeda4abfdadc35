//! Prints what an operator needs in a cluster: definitions, permissions and a Deployment.

use std::collections::BTreeMap;
use std::process::ExitCode;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use serde_json::{Value, json};
use training_job::job::ObjectKind;
use training_job::{admission, render};

use super::program::program;
use crate::DynKind;

/// The verbs on the objects of jobs. `get` finds the owner of an object whose name is taken, and `patch` sets the labels of
/// one that another operator made for the same job.
const OBJECT_VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// The commands of a program that print what to install, for `#[command(flatten)]` in its command line.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Install {
    /// Print the custom resource definitions.
    Crd,
    /// Print the permissions of the operator.
    Rbac {
        /// The namespace of the operator's lease
        #[arg(long, default_value_t = program().name.clone())]
        namespace: String,
    },
    /// Print all objects that run the operator in a cluster.
    Manifests {
        /// The image of the operator
        #[arg(long)]
        image: String,
        /// The namespace of the operator
        #[arg(long, default_value_t = program().name.clone())]
        namespace: String,
    },
}

impl Install {
    /// Prints YAML for `kubectl apply --server-side -f -`.
    ///
    /// The Deployment of `manifests` starts the program with the arguments `run --leader-elect`. A kind that creates
    /// Roles may only grant what the operator may do itself, so add these permissions to its own.
    ///
    /// Exit codes: 0, or 1 if the declarations of a kind are inconsistent. The reason is printed to standard error.
    pub fn print(&self, kinds: &[DynKind]) -> ExitCode {
        let text = match self {
            Self::Crd => definitions(kinds),
            Self::Rbac { namespace } => {
                render::text::documents(&permissions(kinds, namespace)).map_err(|error| error.to_string())
            }
            Self::Manifests { image, namespace } => manifests(kinds, namespace, image),
        };
        match text {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        }
    }
}

fn definitions(kinds: &[DynKind]) -> Result<String, String> {
    let texts = kinds.iter().map(|kind| {
        let definition = kind.definition().map_err(|error| error.to_string())?;
        admission::manifest(&definition)
    });
    texts.collect()
}

fn manifests(kinds: &[DynKind], namespace: &str, image: &str) -> Result<String, String> {
    let name = &program().name;
    let first = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
    ];
    let last = [deployment(namespace, image)];
    let objects: Vec<Value> = first
        .into_iter()
        .chain(permissions(kinds, namespace))
        .chain(last)
        .collect();
    Ok(definitions(kinds)? + &render::text::documents(&objects)?)
}

/// Returns the rules of a role that manages jobs of these kinds in all namespaces where it is bound.
pub fn rules(kinds: &[DynKind]) -> Vec<Value> {
    let rule = |group: &str, resources: &[String], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let mut jobs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for kind in kinds {
        let of_group = jobs.entry(&kind.resource.group).or_default();
        of_group.push(kind.resource.plural.clone());
    }
    let mut rules = Vec::new();
    for (group, plurals) in &jobs {
        let below = |name: &str| -> Vec<String> {
            let paths = plurals.iter().map(|plural| format!("{plural}/{name}"));
            paths.collect()
        };
        rules.push(rule(group, plurals, &["list", "watch", "delete"]));
        rules.push(rule(group, &below("status"), &["patch"]));
        // Some clusters let only those set a blocking owner reference who may write the owner's finalizers.
        rules.push(rule(group, &below("finalizers"), &["update"]));
    }
    let always = [
        ObjectKind::of::<Pod>(),
        ObjectKind::of::<Service>(),
        ObjectKind::of::<ConfigMap>(),
    ];
    let declared = kinds.iter().flat_map(|kind| kind.framework.objects);
    let mut objects: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for kind in always.into_iter().chain(declared.map(|object| object.kind)) {
        let plurals = objects.entry(kind.group).or_default();
        if !plurals.iter().any(|plural| plural == kind.plural) {
            plurals.push(kind.plural.to_owned());
        }
    }
    rules.extend(
        objects
            .iter()
            .map(|(group, plurals)| rule(group, plurals, &OBJECT_VERBS)),
    );
    rules.push(rule("", &["events".to_owned()], &["create", "patch"]));
    rules
}

/// Returns the roles and their bindings to the service account.
fn permissions(kinds: &[DynKind], namespace: &str) -> Vec<Value> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let (name, lease) = (&program().name, &program().lease);
    let election = format!("{name}-leader-election");
    let account = json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
    let object = |kind: &str, metadata: Value, more: Value| {
        let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata});
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    };
    let reference = |kind: &str, name: &str| json!({"apiGroup": GROUP, "kind": kind, "name": name});
    // A name is unknown when something is created.
    let leases = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [lease], "verbs": ["get", "update"]},
    ]);
    vec![
        object(
            "ClusterRole",
            json!({"name": name}),
            json!({"rules": rules(kinds)}),
        ),
        object(
            "ClusterRoleBinding",
            json!({"name": name}),
            json!({"roleRef": reference("ClusterRole", name), "subjects": [account]}),
        ),
        object(
            "Role",
            json!({"name": election, "namespace": namespace}),
            json!({"rules": leases}),
        ),
        object(
            "RoleBinding",
            json!({"name": election, "namespace": namespace}),
            json!({"roleRef": reference("Role", &election), "subjects": [account]}),
        ),
    ]
}

fn deployment(namespace: &str, image: &str) -> Value {
    let name = &program().name;
    let labels = json!({"app.kubernetes.io/name": name});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "health"}, "periodSeconds": 5, "timeoutSeconds": 3});
    let container = json!({
        "name": "operator",
        "image": image,
        "args": ["run", "--leader-elect"],
        "env": [{"name": "MY_POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "terminationGracePeriodSeconds": 20,
                    "containers": [container],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::toy::ToyJob;

    #[test]
    fn each_group_has_one_rule_for_each_set_of_verbs() {
        let rules = rules(&[DynKind::new::<ToyJob>()]);
        let text: Vec<String> = rules.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                r#"{"apiGroups":["example.com"],"resources":["toyjobs"],"verbs":["list","watch","delete"]}"#,
                r#"{"apiGroups":["example.com"],"resources":["toyjobs/status"],"verbs":["patch"]}"#,
                r#"{"apiGroups":["example.com"],"resources":["toyjobs/finalizers"],"verbs":["update"]}"#,
                r#"{"apiGroups":[""],"resources":["pods","services","configmaps"],"verbs":["get","list","watch","create","patch","delete"]}"#,
                r#"{"apiGroups":[""],"resources":["events"],"verbs":["create","patch"]}"#,
            ]
        );
    }
}
