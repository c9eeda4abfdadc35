//! The installation of this operator, and the remains of former operators, for `doctor`.

#[cfg(test)]
mod tests;

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube_manifest::{Finding, Severity};
use serde_json::Value;
use training_job_cli::doctor::{finding, list_names};
use training_job_cli::installation::{ClusterState, Installation, OperatorVariant, name, runs};

use training_review::FORMER_GROUPS;
use training_review::convert::RUN_POLICY_FIELDS;

/// The kind that needs more permissions, and whose definition the separate mpi-operator may have.
const MPI_KIND: &str = "MPIJob";

/// The kinds of 2017, whose definitions few clusters have.
const KINDS_OF_2017: [&str; 2] = ["TfJob", "MxJob"];

/// The kinds that run only if they are named, and that the manifests leave out. The components `manifests/mpi` and
/// `manifests/mlkube` add them.
pub(crate) const OPTIONAL_KINDS: [&str; 3] = [MPI_KIND, KINDS_OF_2017[0], KINDS_OF_2017[1]];

pub(crate) fn installation() -> Installation {
    let mut installation = Installation::default();
    installation.more_rules = more_rules;
    installation.operator_of = operator_of;
    installation.apply_definition = |kind| format!("apply it with: {APPLY} crds{}", folder(kind));
    installation.take_over_definition =
        |kind| format!("apply it with: {APPLY} manifests/takeover{}", folder(kind));
    installation.apply_reader_role =
        || "bind yourself to the ClusterRole of manifests/doctor, or run doctor as another user".to_owned();
    installation.install = || "apply one of manifests/overlays".to_owned();
    installation.former_jobs = former_jobs;
    installation
}

fn more_rules(kind: &str) -> Vec<PolicyRule> {
    if kind != MPI_KIND {
        return Vec::new();
    }
    // The operator grants these permissions to the launcher, so it must have them itself. kubectl sends `create`, and
    // clients that open a WebSocket send `get`.
    vec![PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["pods/exec".to_owned()]),
        verbs: vec!["create".to_owned(), "get".to_owned()],
        ..PolicyRule::default()
    }]
}

/// The command that installs definitions, up to its folder.
const APPLY: &str = "kubectl apply --server-side --force-conflicts -k";

/// Returns the folder of a kind's definition below `crds` and `manifests/takeover`.
fn folder(kind: &str) -> &'static str {
    match kind {
        MPI_KIND => "/mpi",
        kind if KINDS_OF_2017.contains(&kind) => "/mlkube",
        _ => "",
    }
}

fn operator_of(deployment: &Value) -> Option<OperatorVariant> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
    // The Go operator's Deployment has the same names, but its container has no arguments.
    let is_this = |c: &Value| c["args"][0] == "run" || c["command"][0] == "training-operator";
    if runs(deployment, "training-operator") {
        return Some(match containers.iter().any(is_this) {
            true => OperatorVariant::This,
            false => OperatorVariant::Other("the Kubeflow training operator"),
        });
    }
    let mut older = ["mxnet-operator", "mx-operator", "tf-operator", "tf_operator"].into_iter();
    older
        .any(|name| runs(deployment, name))
        .then_some(OperatorVariant::Competitor("an older operator"))
}

/// Finds the separate mpi-operator. It runs all MPIJobs that its version of the definition shows.
fn mpi_operator(state: &ClusterState) -> Option<Finding> {
    let is_mpi_operator = |d: &&Value| runs(d, "mpi-operator") && d["spec"]["replicas"] != 0;
    let (namespace, deployment) = name(state.deployments.iter().find(is_mpi_operator)?);
    let mut definitions = state.definitions.iter();
    let definition = definitions.find(|d| d["metadata"]["name"] == "mpijobs.kubeflow.org")?;
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    let object = format!("deployment {namespace}/{deployment}");
    Some(match versions.all(|version| version["name"] == "v2beta1") {
        true => finding(
            Severity::Note,
            &object,
            "runs the mpi-operator, to which the definition of MPIJob belongs",
            "do not apply crds/mpi, and leave MPIJob out of --enable-scheme",
        ),
        false => finding(
            Severity::Warning,
            &object,
            "runs the mpi-operator, which runs all MPIJobs beside this operator",
            &format!(
                "once its jobs have ended, delete it: kubectl --namespace {namespace} delete deployment {deployment}"
            ),
        ),
    })
}

fn former_jobs(state: &ClusterState) -> Vec<Finding> {
    let mut findings: Vec<Finding> = mpi_operator(state).into_iter().collect();
    let mut add = |severity, test: &dyn Fn(&Value) -> bool, problem: &str, remedy: &str| {
        let named = state.jobs.iter().filter(|job| test(job)).map(name);
        let named: Vec<String> = named
            .map(|(namespace, name)| format!("{namespace}/{name}"))
            .collect();
        if !named.is_empty() {
            let problem = format!("{problem}: {}", list_names(&named));
            findings.push(finding(severity, "jobs", problem, remedy));
        }
    };
    add(
        Severity::Note,
        &|job| job["kind"] == "MXJob" && has_policy_at_top(&job["spec"]),
        "policies at the top of the spec",
        "these jobs follow the rules of the stand-alone operator; to write the rules out, use training-operator convert",
    );
    add(
        Severity::Note,
        &|job| !job["status"]["mxReplicaStatuses"].is_null() && job["status"]["replicaStatuses"].is_null(),
        "only the stand-alone operator has written their statuses",
        "no action needed: this operator adds its own status to jobs that have not ended",
    );
    add(
        Severity::Warning,
        &was_started_with_batch_jobs,
        "started by an operator that creates batch Jobs, and not ended",
        "wait until they end before you install this operator, which would create a second set of pods",
    );
    findings
}

/// Returns true if an ancestor of this operator runs the job.
fn was_started_with_batch_jobs(job: &Value) -> bool {
    let version = job["apiVersion"].as_str().unwrap_or_default();
    let is_old = FORMER_GROUPS.iter().any(|group| version.starts_with(group));
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let phase = job["status"]["phase"].as_str().unwrap_or_default();
    // Only this operator's conditions have a status.
    is_old
        && ["Creating", "Running", "CleanUp"].contains(&phase)
        && conditions.all(|condition| condition["status"].is_null())
}

/// Returns true if an MXJob has a policy at the top of its spec, as under the stand-alone operator, but does not set
/// `compatibility`.
fn has_policy_at_top(spec: &Value) -> bool {
    spec["compatibility"].is_null() && RUN_POLICY_FIELDS.iter().any(|policy| !spec[policy].is_null())
}
