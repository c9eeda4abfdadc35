//! The commands that print what an operator needs in a cluster: definitions, permissions and a Deployment.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use training_job::admission;
use training_job_program::{all_kinds_but, is_on_secrets, program, rule_on_logs};
use training_job_review::report::note;
use training_job_review::{Failure, Kind, help, write};

use crate::kinds::Kinds;

const CRD_HELP: &str = "\
Examples:
  {program} crd | kubectl apply --server-side --force-conflicts -f -
  {program} crd --dir crds

Exit codes:
  0  success
  2  the declarations of a kind are inconsistent, the files cannot be written, or bad usage";

const RBAC_HELP: &str = "\
Other permissions of the account, and those of other installations, stay as they are.

Examples:
  {program} rbac --namespace operators | kubectl apply --server-side --force-conflicts -f -
  {program} rbac --logs --namespace operators | kubectl apply --server-side --force-conflicts -f -

Exit codes:
  0  success
  2  bad usage";

const MANIFESTS_HELP: &str = "\
The objects are a namespace, the definitions, the permissions and a Deployment with two replicas: a leader and a
standby.

Examples:
  {program} manifests --image example.com/{program}:1 | kubectl apply --server-side --force-conflicts -f -

Exit codes:
  0  success
  2  the declarations of a kind are inconsistent, or bad usage";

/// The commands that print the objects of an installation, as YAML for
/// `kubectl apply --server-side --force-conflicts -f -`, for `#[command(flatten)]` in a program's command line.
///
/// The Deployment of `manifests` starts the program with the arguments `run --leader-elect`, and with `--enable-scheme` if
/// the installation leaves kinds out. A kind that creates Roles may only grant what the operator may do itself, so add
/// these permissions to its own.
#[derive(Debug, clap::Subcommand)]
pub enum Install {
    /// Print the custom resource definitions.
    #[command(alias = "crds", after_help = help(CRD_HELP))]
    Crd {
        /// Write one file per definition, such as example.com_farmjobs.yaml, into this directory instead.
        #[arg(long)]
        dir: Option<PathBuf>,
        /// The kinds to print.
        #[command(flatten)]
        kinds: InstalledKinds,
    },
    /// Print the permissions of the operator.
    #[command(after_help = help(RBAC_HELP))]
    Rbac {
        /// The namespace of the operator's service account and lease.
        #[arg(long, value_name = "NAME", default_value_t = program().namespace.clone())]
        namespace: String,
        /// The operator's service account.
        #[arg(long, value_name = "NAME", default_value_t = program().name.clone())]
        service_account: String,
        /// Print instead the right to read the output of pods, which jobs with runPolicy.progress need. An account that
        /// can read logs can also read the secrets that pods print.
        #[arg(long)]
        logs: bool,
        /// The kinds to print.
        #[command(flatten)]
        kinds: InstalledKinds,
    },
    /// Print all objects that run the operator in a cluster.
    #[command(after_help = help(MANIFESTS_HELP))]
    Manifests {
        /// The image of the operator.
        #[arg(long)]
        image: String,
        /// The namespace of the operator.
        #[arg(long, value_name = "NAME", default_value_t = program().namespace.clone())]
        namespace: String,
        /// The kinds to print.
        #[command(flatten)]
        kinds: InstalledKinds,
    },
}

/// The kinds of an installation, or of a local cluster.
#[derive(Debug, clap::Args)]
pub struct InstalledKinds {
    /// Kind of job; can be repeated.
    #[arg(long = "kind", value_name = "KIND", help = kind_help())]
    names: Vec<String>,
}

fn kind_help() -> String {
    let default = all_kinds_but(program().optional_kinds);
    format!("Kind of job; can be repeated [default: {default}]")
}

impl InstalledKinds {
    /// Returns the named kinds. Without names, returns all kinds but the optional ones.
    pub(crate) fn of<'k>(&self, kinds: &'k Kinds) -> Result<Vec<&'k Arc<Kind>>, Failure> {
        let named: Vec<&Arc<Kind>> = self
            .names
            .iter()
            .map(|name| kinds.named(name).ok_or_else(|| unknown(name, kinds)))
            .collect::<Result<_, _>>()?;
        Ok(match named.is_empty() {
            true => kinds.installed_by_default().collect(),
            false => named,
        })
    }
}

fn unknown(name: &str, kinds: &Kinds) -> Failure {
    let known: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    Failure::new(
        "--kind",
        format!("{name:?} is not supported; must be one of {}", known.join(", ")),
    )
}

impl Install {
    /// Prints the objects.
    ///
    /// # Errors
    /// The declarations of a kind are inconsistent, or a file cannot be written.
    pub fn run(&self, kinds: &Kinds) -> Result<ExitCode, Failure> {
        let text = match self {
            Self::Crd {
                dir: Some(directory),
                kinds: of,
            } => {
                write_definitions(&of.of(kinds)?, directory)?;
                return Ok(ExitCode::SUCCESS);
            }
            Self::Crd { dir: None, kinds: of } => definitions(&of.of(kinds)?)?.into_values().collect(),
            Self::Rbac {
                namespace,
                service_account,
                logs,
                kinds: of,
            } => yaml(&match logs {
                true => log_permissions((namespace, service_account)),
                false => permissions(kinds, &of.of(kinds)?, (namespace, service_account)),
            })?,
            Self::Manifests {
                image,
                namespace,
                kinds: of,
            } => manifests(kinds, &of.of(kinds)?, namespace, image)?,
        };
        write::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes each definition to a file of its own in a directory, which is created if it does not exist.
fn write_definitions(kinds: &[&Arc<Kind>], directory: &Path) -> Result<(), Failure> {
    for (file, text) in definitions(kinds)? {
        let file = directory.join(file);
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| Failure::new(&file.display().to_string(), error))?;
    }
    Ok(())
}

/// Returns the texts of the definitions by the names of their files.
fn definitions(kinds: &[&Arc<Kind>]) -> Result<BTreeMap<String, String>, Failure> {
    let texts = kinds.iter().map(|kind| {
        let definition = kind
            .built_definition()
            .map_err(|error| Failure::new(kind.name(), error))?;
        let mut definition = definition.clone();
        definition.metadata.labels = Some(labels());
        if let Some(warning) = admission::size_warning(&definition) {
            note(&warning);
        }
        let text = admission::manifest(&definition).map_err(|error| Failure::new("output", error))?;
        let spec = &definition.spec;
        Ok((format!("{}_{}.yaml", spec.group, spec.names.plural), text))
    });
    texts.collect()
}

/// Returns the labels that name the program and its version.
fn labels() -> BTreeMap<String, String> {
    let program = program();
    let name = Some(("app.kubernetes.io/name".to_owned(), program.name.clone()));
    let version = program
        .version
        .map(|version| ("app.kubernetes.io/version".to_owned(), version.to_owned()));
    name.into_iter().chain(version).collect()
}

fn yaml(objects: &[Value]) -> Result<String, Failure> {
    write::documents(objects).map_err(|error| Failure::new("output", error))
}

fn manifests(all: &Kinds, kinds: &[&Arc<Kind>], namespace: &str, image: &str) -> Result<String, Failure> {
    let name = &program().name;
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
    ];
    objects.extend(permissions(all, kinds, (namespace, name)));
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let enabled = (kinds.len() < all.len()).then(|| format!("--enable-scheme={}", names.join(",")));
    objects.push(deployment(namespace, image, enabled));
    Ok(definitions(kinds)?.into_values().collect::<String>() + &yaml(&objects)?)
}

/// Returns the roles and their bindings to the service account. The names of objects of the whole cluster contain the
/// namespace, so that the permissions of another installation stay as they are. The right on Secrets has a role of its own,
/// so that it can be left out, or bound in some namespaces only.
fn permissions(all: &Kinds, kinds: &[&Arc<Kind>], account: (&str, &str)) -> Vec<Value> {
    let (name, lease) = (&program().name, &program().lease);
    // A name is unknown when something is created.
    let leases = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [lease], "verbs": ["get", "update"]},
    ]);
    let rules = all.rules_of(kinds.iter().copied());
    let (of_secrets, rules): (Vec<_>, Vec<_>) = rules.into_iter().partition(is_on_secrets);
    let mut objects = Vec::new();
    for (end, rules) in [("", rules), ("-secrets", of_secrets)] {
        if !rules.is_empty() {
            objects.extend(role_of_cluster(end, &json!(rules), account));
        }
    }
    let metadata = json!({"name": format!("{name}-leader-election"), "namespace": account.0});
    objects.extend(role("", &metadata, &leases, account));
    objects
}

/// Returns the role that allows to read the output of pods, and its binding.
fn log_permissions(account: (&str, &str)) -> Vec<Value> {
    role_of_cluster("-logs", &json!([rule_on_logs()]), account).into()
}

/// Returns the ClusterRole of an installation with this end of its name, and its binding.
fn role_of_cluster(end: &str, rules: &Value, account: (&str, &str)) -> [Value; 2] {
    let metadata = json!({"name": format!("{}-{}{end}", program().name, account.0)});
    role("Cluster", &metadata, rules, account)
}

/// Returns a Role, or with the prefix `Cluster` a ClusterRole, and its binding to a service account, which is given by its
/// namespace and name.
fn role(prefix: &str, metadata: &Value, rules: &Value, (namespace, account): (&str, &str)) -> [Value; 2] {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let (version, kind) = (format!("{GROUP}/v1"), format!("{prefix}Role"));
    [
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version,
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
    ]
}

fn deployment(namespace: &str, image: &str, enabled: Option<String>) -> Value {
    let name = &program().name;
    let labels = json!({"app.kubernetes.io/name": name});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "health"}, "periodSeconds": 5, "timeoutSeconds": 3});
    let variable =
        |name: &str, field: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}});
    let flags = ["run", "--leader-elect"].map(str::to_owned);
    let arguments: Vec<String> = flags.into_iter().chain(enabled).collect();
    let container = json!({
        "name": "operator",
        "image": image,
        "args": arguments,
        "env": [variable("MY_POD_NAMESPACE", "metadata.namespace"), variable("MY_POD_UID", "metadata.uid")],
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
    use training_job_testbed::StepJob;

    use super::*;

    #[test]
    fn the_right_on_secrets_has_a_role_of_its_own() {
        let kinds = Kinds::default().kind::<StepJob>();
        let objects = permissions(&kinds, &kinds.iter().collect::<Vec<_>>(), ("jobs", "operator"));
        let of_secrets = |object: &&Value| object.to_string().contains("secrets");
        let names = objects.iter().filter(of_secrets).map(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            (
                object["kind"].as_str().unwrap_or_default(),
                name.ends_with("-jobs-secrets"),
            )
        });
        let expected = [("ClusterRole", true), ("ClusterRoleBinding", true)];
        assert_eq!(names.collect::<Vec<_>>(), expected);
        assert_eq!(objects.len(), 6);
    }
}
