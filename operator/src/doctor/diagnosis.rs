//! Finds the problems of a cluster in the data that was read from it. Has no side effects.

use std::collections::{BTreeMap, BTreeSet};

use kube_manifest::{Finding, Severity};
use serde_json::Value;
use training_job::validate::annotations::AnnotatedField;

use crate::convert::RUN_POLICY_FIELDS;
use crate::kinds::Kind;
use crate::lease::LEASE;

use super::cluster_state::{
    API_GROUPS, ClusterState, OPT_IN_KIND, OperatorVariant, enabled_kinds, name, operator_of,
};
use super::copies::{is_bare_copy, lost_fields};

/// The oldest Kubernetes version that accepts the definitions.
const MIN_KUBERNETES_VERSION: (u32, u32) = (1, 30);

/// The maximum number of names in one finding.
const MAX_LISTED_NAMES: usize = 5;

/// Returns the command that applies the definition of a kind.
fn apply_command(kind: &Kind) -> &'static str {
    match kind.name() == OPT_IN_KIND {
        true => {
            "apply it with: kubectl apply --server-side --force-conflicts -f crds/kubeflow.org_mpijobs.yaml"
        }
        false => "apply crds/ with: kubectl apply --server-side --force-conflicts -k crds",
    }
}

/// Returns the kinds that run here: those of this operator's Deployments, or the default ones if there is no
/// Deployment.
fn expected_kinds<'k>(state: &ClusterState, kinds: &'k [Kind]) -> Vec<&'k Kind> {
    let ours = state
        .deployments
        .iter()
        .filter(|d| operator_of(d) == Some(OperatorVariant::This));
    let ours: Vec<&str> = ours
        .flat_map(|deployment| enabled_kinds(deployment, kinds))
        .map(|kind| kind.name())
        .collect();
    let is_wanted = |kind: &&Kind| match ours.is_empty() {
        true => kind.name() != OPT_IN_KIND,
        false => ours.contains(&kind.name()),
    };
    kinds.iter().filter(is_wanted).collect()
}

/// Returns all findings, the most severe first.
pub(crate) fn findings(state: &ClusterState, kinds: &[Kind]) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    found.version(state);
    found.definitions(state, kinds);
    found.webhooks(state);
    found.operators(state);
    found.permissions(state);
    found.jobs(state);
    found.copies(state, kinds);
    for (what, why) in &state.unreadable {
        let remedy = "run doctor as a user who may read them";
        found.add(Severity::Warning, what, format!("cannot be read: {why}"), remedy);
    }
    let rank = |finding: &Finding| match finding.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    };
    found.0.sort_by_key(rank);
    found.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, object: &str, problem: impl Into<String>, remedy: &str) {
        self.0.push(Finding {
            severity,
            file: object.to_owned(),
            at: None,
            path: String::new(),
            problem: problem.into(),
            remedy: remedy.to_owned(),
        });
    }

    fn version(&mut self, state: &ClusterState) {
        let ((major, minor), (oldest_major, oldest)) = (state.version, MIN_KUBERNETES_VERSION);
        if state.version < MIN_KUBERNETES_VERSION {
            let problem = format!(
                "must be version {oldest_major}.{oldest} or later for the definitions (is {major}.{minor})"
            );
            self.add(
                Severity::Error,
                "API server",
                problem,
                "upgrade the cluster first",
            );
        }
    }

    fn definitions(&mut self, state: &ClusterState, kinds: &[Kind]) {
        let known: BTreeMap<String, &Kind> = expected_kinds(state, kinds)
            .into_iter()
            .map(|kind| (format!("{}.{}", kind.resource.plural, kind.resource.group), kind))
            .collect();
        for definition in &state.definitions {
            let (_, plural) = name(definition);
            let object = format!("definition {plural}");
            match known.get(plural) {
                Some(kind) => self.definition(&object, definition, kind),
                None => {
                    let problem = "this operator does not run jobs of this kind";
                    self.add(
                        Severity::Note,
                        &object,
                        problem,
                        "keep the operator of this kind, and disable the other kinds there",
                    );
                }
            }
        }
        let is_unreadable = state
            .unreadable
            .iter()
            .any(|(what, _)| what.starts_with("customresourcedefinitions"));
        for (plural, kind) in known.iter().filter(|_| !is_unreadable) {
            if state
                .definitions
                .iter()
                .all(|definition| name(definition).1 != *plural)
            {
                let object = format!("definition {plural}");
                self.add(Severity::Warning, &object, "missing", apply_command(kind));
            }
        }
    }

    fn definition(&mut self, object: &str, definition: &Value, kind: &Kind) {
        let spec = &definition["spec"];
        if spec["preserveUnknownFields"] == true {
            let problem =
                "belongs to an older operator and keeps unknown fields, so stored jobs are not checked";
            return self.add(Severity::Error, object, problem, apply_command(kind));
        }
        let texts = |list: &Value| -> BTreeSet<String> {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(|v| v.as_str().or_else(|| v["name"].as_str()).map(str::to_owned))
                .collect()
        };
        let ours: BTreeSet<String> = kind
            .definition()
            .spec
            .versions
            .iter()
            .map(|v| v.name.clone())
            .collect();
        let stored = texts(&definition["status"]["storedVersions"]);
        if let Some(version) = stored.difference(&ours).next() {
            let problem = format!("jobs may be stored as {version}, which is no longer served");
            let remedy = "save the jobs with kubectl get, convert them, delete the definition, apply the new definition, and apply the jobs";
            return self.add(Severity::Error, object, problem, remedy);
        }
        let there = texts(&spec["versions"]);
        let version = |one: &Value| {
            let properties = one.pointer("/schema/openAPIV3Schema/properties/spec/properties");
            let fields = properties
                .and_then(Value::as_object)
                .map(|p| p.keys().cloned().collect());
            (
                one["name"].as_str().unwrap_or_default().to_owned(),
                fields.unwrap_or_default(),
            )
        };
        let fields = |versions: &Value| -> BTreeMap<String, BTreeSet<String>> {
            versions.as_array().into_iter().flatten().map(version).collect()
        };
        let wanted = serde_json::to_value(&kind.definition().spec.versions).unwrap_or_default();
        if there != ours || fields(&spec["versions"]) != fields(&wanted) {
            let problem = "its versions or fields differ from those of this operator";
            self.add(Severity::Error, object, problem, apply_command(kind));
        }
    }

    fn webhooks(&mut self, state: &ClusterState) {
        let is_unreadable = state
            .unreadable
            .iter()
            .any(|(what, _)| what.starts_with("services "));
        for configuration in state.webhooks.iter().filter(|_| !is_unreadable) {
            let kind = configuration["kind"].as_str().unwrap_or_default().to_lowercase();
            let (_, configured) = name(configuration);
            for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
                let service = &webhook["clientConfig"]["service"];
                if !matches_jobs(webhook) || !service.is_object() {
                    continue;
                }
                let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
                let at = (text("namespace"), text("name"));
                if state.services.contains(&at) {
                    continue;
                }
                let ignored = webhook["failurePolicy"] == "Ignore";
                let severity = if ignored {
                    Severity::Warning
                } else {
                    Severity::Error
                };
                let consequence = if ignored {
                    "each request for a job waits for the timeout"
                } else {
                    "no job can be created or changed"
                };
                let problem = format!("its service {}/{} does not exist, so {consequence}", at.0, at.1);
                let remedy = format!("delete it with: kubectl delete {kind} {configured}");
                self.add(severity, &format!("{kind} {configured}"), problem, &remedy);
                break;
            }
        }
    }

    fn operators(&mut self, state: &ClusterState) {
        let named = |deployment: &Value| {
            let (namespace, name) = name(deployment);
            format!("{namespace}/{name}")
        };
        let all: Vec<_> = state
            .deployments
            .iter()
            .filter_map(|d| Some((operator_of(d)?, d)))
            .collect();
        let others = all
            .iter()
            .filter(|(operator, _)| *operator != OperatorVariant::This);
        let works = all.iter().any(|(operator, _)| *operator == OperatorVariant::This);
        for (operator, deployment) in others {
            let object = format!("deployment {}", named(deployment));
            let whose = match operator {
                OperatorVariant::Go => "the Kubeflow training operator",
                OperatorVariant::Older | OperatorVariant::This => "an older operator",
            };
            if works && *operator == OperatorVariant::Older {
                let problem =
                    format!("runs {whose} beside this operator, so both create pods for the same jobs");
                self.add(
                    Severity::Error,
                    &object,
                    problem,
                    "delete it: this operator takes over running jobs",
                );
            } else if works {
                let problem = format!("runs {whose} beside this operator");
                let remedy = "delete it, or restrict it to other kinds with --enable-scheme";
                self.add(Severity::Warning, &object, problem, remedy);
            } else {
                let problem = format!("runs {whose}");
                self.add(
                    Severity::Note,
                    &object,
                    problem,
                    "delete it before this operator is installed",
                );
            }
        }
        let is_unreadable = state
            .unreadable
            .iter()
            .any(|(what, _)| what.starts_with("deployments "));
        if all.is_empty() && !is_unreadable {
            let problem = "missing: no Deployment runs an operator of training jobs";
            self.add(
                Severity::Note,
                "operator",
                problem,
                "apply one of manifests/overlays",
            );
        }
        let is_held = |lease: &&Value| {
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            name(lease).1 == LEASE && !holder.is_empty()
        };
        let held: Vec<_> = state.leases.iter().filter(is_held).collect();
        if held.len() > 1 {
            let names: Vec<_> = held.iter().map(|lease| name(lease).0).collect();
            let problem = format!("held in several namespaces: {}", names.join(", "));
            let remedy =
                "restrict each of these operators to its own namespace of jobs, or delete all but one";
            self.add(Severity::Warning, &format!("lease {LEASE}"), problem, remedy);
        }
    }

    fn permissions(&mut self, state: &ClusterState) {
        let mut by_account: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for missing in &state.missing_permissions {
            let (verb, resource) = &missing.permission;
            by_account
                .entry(&missing.account)
                .or_default()
                .push(format!("{verb} {resource}"));
        }
        for ((namespace, account), permissions) in by_account {
            let object = format!("service account {namespace}/{account}");
            let problem = format!("lacks permissions: {}", list_names(&permissions));
            self.add(
                Severity::Error,
                &object,
                problem,
                "apply the role of manifests/base and, for MPIJobs, of manifests/mpi",
            );
        }
    }

    /// Reports jobs that another cluster runs, or that were copied from one.
    fn copies(&mut self, state: &ClusterState, kinds: &[Kind]) {
        let titled = |job: &Value| {
            let (namespace, name) = name(job);
            format!("{namespace}/{name}")
        };
        let mut lost: BTreeMap<AnnotatedField, Vec<String>> = BTreeMap::new();
        for job in &state.jobs {
            for of in lost_fields(job, kinds) {
                lost.entry(of).or_default().push(titled(job));
            }
        }
        for (of, jobs) in lost {
            let problem = format!(
                "spec.{} is missing in their copies, which MultiKueue creates in another cluster: {}",
                of.field,
                list_names(&jobs)
            );
            let remedy = format!("set the annotation {} to the same value", of.annotation);
            self.add(Severity::Warning, "jobs", problem, &remedy);
        }
        let bare = state.jobs.iter().filter(|job| is_bare_copy(job, kinds));
        let bare: Vec<_> = bare.map(titled).collect();
        if !bare.is_empty() {
            let problem = format!(
                "copied by MultiKueue from another cluster, which omits failurePolicy, successPolicy, restartScope and \
                 layout: {}",
                list_names(&bare)
            );
            let remedy = "if the originals set these fields, set the annotations of docs/users/policies.md as well, because \
                          annotations are copied";
            self.add(Severity::Note, "jobs", problem, remedy);
        }
    }

    fn jobs(&mut self, state: &ClusterState) {
        let of = |test: &dyn Fn(&Value) -> bool| -> Vec<String> {
            let found = state.jobs.iter().filter(|job| test(job)).map(name);
            found
                .map(|(namespace, name)| format!("{namespace}/{name}"))
                .collect()
        };
        let with_top_level_policies = of(&|job| job["kind"] == "MXJob" && has_policy_at_top(&job["spec"]));
        if !with_top_level_policies.is_empty() {
            let problem = format!(
                "policies at the top of the spec: {}",
                list_names(&with_top_level_policies)
            );
            let remedy = "these jobs follow the rules of the stand-alone operator; to write the rules out, use \
                          training-operator convert";
            self.add(Severity::Note, "jobs", problem, remedy);
        }
        let with_former_status = of(&|job| {
            let status = &job["status"];
            !status["mxReplicaStatuses"].is_null() && status["replicaStatuses"].is_null()
        });
        if !with_former_status.is_empty() {
            let problem = format!(
                "only the stand-alone operator has written their statuses: {}",
                list_names(&with_former_status)
            );
            self.add(
                Severity::Note,
                "jobs",
                problem,
                "no action needed: this operator adds its own status to jobs that have not ended",
            );
        }
        let run_by_batch_jobs = of(&|job| {
            let version = job["apiVersion"].as_str().unwrap_or_default();
            let is_old = API_GROUPS[1..].iter().any(|group| version.starts_with(group));
            let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
            let has_begun = ["Creating", "Running", "CleanUp"]
                .iter()
                .any(|phase| job["status"]["phase"] == *phase);
            is_old && has_begun && conditions.all(|condition| condition["status"].is_null())
        });
        if !run_by_batch_jobs.is_empty() {
            let problem = format!(
                "started by an operator that creates batch Jobs, and not ended: {}",
                list_names(&run_by_batch_jobs)
            );
            self.add(
                Severity::Warning,
                "jobs",
                problem,
                "wait until they end before you install this operator, which would create a second set of pods",
            );
        }
    }
}

/// Returns the first names of a list, and the number of the others.
fn list_names(names: &[String]) -> String {
    let first = names[..names.len().min(MAX_LISTED_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_LISTED_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Returns true if a webhook receives requests for jobs.
fn matches_jobs(webhook: &Value) -> bool {
    let rules = webhook["rules"].as_array().into_iter().flatten();
    let mut groups = rules.flat_map(|rule| rule["apiGroups"].as_array().into_iter().flatten());
    groups.any(|group| API_GROUPS.iter().any(|ours| group == ours))
}

/// Returns true if an MXJob has a policy at the top of its spec, as under the stand-alone operator, but does not set
/// `compatibility`.
fn has_policy_at_top(spec: &Value) -> bool {
    spec["compatibility"].is_null() && RUN_POLICY_FIELDS.iter().any(|policy| !spec[policy].is_null())
}
