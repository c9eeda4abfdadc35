//! Finds the problems of a cluster in the data that was read from it. Has no side effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_manifest::{Finding, Severity};
use serde_json::Value;
use training_job::validate::annotations::AnnotatedField;
use training_job_program::{grant_command, program};
use training_job_review::Kind;

use super::copies::{is_bare_copy, lost_fields};
use super::definitions::is_outdated;
use super::deployments::{expected_kinds, operator_of};
use super::overview::{
    expired_since, held_leases, is_refused, ready_pods, stalled_jobs, unseen_jobs, waiting_jobs,
    waiting_reason,
};
use crate::installation::{ClusterState, OperatorVariant, name};
use crate::kinds::Kinds;

/// The oldest Kubernetes version that accepts the definitions.
const MIN_KUBERNETES_VERSION: (u32, u32) = (1, 30);

/// The maximum number of names in one finding.
const MAX_LISTED_NAMES: usize = 5;

/// Returns all findings, the most severe first.
pub fn findings(state: &ClusterState, kinds: &Kinds) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    found.version(state);
    found.definitions(state, kinds);
    found.webhooks(state, kinds);
    found.operators(state, kinds);
    found.permissions(state, kinds);
    found.0.extend((kinds.installation.former_jobs)(state));
    found.copies(state, kinds);
    found.unseen_jobs(state, kinds);
    found.refused_jobs(state);
    found.waiting_jobs(state);
    found.stalled_jobs(state);
    found.unreadable(state, kinds);
    let rank = |finding: &Finding| match finding.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Note => 2,
    };
    found.0.sort_by_key(rank);
    found.0
}

/// Returns a finding about an object of a cluster, or about a group of them.
pub fn finding(severity: Severity, object: &str, problem: impl Into<String>, remedy: &str) -> Finding {
    Finding {
        severity,
        file: object.to_owned(),
        at: None,
        path: String::new(),
        problem: problem.into(),
        remedy: remedy.to_owned(),
    }
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, object: &str, problem: impl Into<String>, remedy: &str) {
        self.0.push(finding(severity, object, problem, remedy));
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

    fn definitions(&mut self, state: &ClusterState, kinds: &Kinds) {
        let known: BTreeMap<String, &Arc<Kind>> = expected_kinds(state, kinds)
            .into_iter()
            .map(|kind| (format!("{}.{}", kind.resource.plural, kind.resource.group), kind))
            .collect();
        let mut others = Vec::new();
        for definition in &state.definitions {
            let (_, plural) = name(definition);
            let object = format!("CRD {plural}");
            match known.get(plural) {
                Some(kind) => {
                    if let Some((problem, remedy)) = is_outdated(definition, kind) {
                        let remedy = remedy.describe(kinds, kind);
                        self.add(Severity::Error, &object, problem, &remedy);
                    }
                }
                None => others.push(plural.to_owned()),
            }
        }
        if !others.is_empty() {
            let problem = format!("this operator does not run jobs of {}", list_names(&others));
            let remedy = "run these kinds with another operator, or enable them with --enable-scheme";
            self.add(Severity::Note, "CRDs", problem, remedy);
        }
        let is_unreadable = state.is_unreadable("customresourcedefinitions");
        for (plural, kind) in known.iter().filter(|_| !is_unreadable) {
            if state
                .definitions
                .iter()
                .all(|definition| name(definition).1 != *plural)
            {
                let object = format!("CRD {plural}");
                let remedy = (kinds.installation.apply_definition)(kind.name());
                self.add(Severity::Warning, &object, "not installed", &remedy);
            }
        }
    }

    fn webhooks(&mut self, state: &ClusterState, kinds: &Kinds) {
        let is_unreadable = state.is_unreadable("services");
        for configuration in state.webhooks.iter().filter(|_| !is_unreadable) {
            let kind = configuration["kind"].as_str().unwrap_or_default().to_lowercase();
            let (_, configured) = name(configuration);
            for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
                let service = &webhook["clientConfig"]["service"];
                if !matches_jobs(webhook, kinds) || !service.is_object() {
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

    fn operators(&mut self, state: &ClusterState, kinds: &Kinds) {
        let named = |deployment: &Value| {
            let (namespace, name) = name(deployment);
            format!("{namespace}/{name}")
        };
        let all: Vec<_> = state
            .deployments
            .iter()
            .filter_map(|d| Some((operator_of(d, kinds)?, d)))
            .collect();
        let works = all.iter().any(|(operator, _)| *operator == OperatorVariant::This);
        for (operator, deployment) in &all {
            let object = format!("deployment {}", named(deployment));
            let whose = match operator {
                OperatorVariant::This => {
                    let (ready, wanted) = ready_pods(deployment);
                    if ready < wanted {
                        let (namespace, name) = name(deployment);
                        let mut problem = format!("{ready} of {wanted} pods are ready");
                        let mut remedy = format!(
                            "run: kubectl --namespace {namespace} describe deployment,replicaset,pod, and look for {name}"
                        );
                        if let Some(command) = foreign_command(deployment) {
                            problem += &format!(", and its container runs {command} of another operator");
                            remedy = format!(
                                "run: kubectl --namespace {namespace} delete deployment {name}, and apply the manifests again"
                            );
                        }
                        self.add(Severity::Warning, &object, problem, &remedy);
                    }
                    continue;
                }
                OperatorVariant::Other(name) | OperatorVariant::Competitor(name) => name,
            };
            let (namespace, name) = name(deployment);
            let delete = format!("kubectl --namespace {namespace} delete deployment {name}");
            if works && matches!(operator, OperatorVariant::Competitor(_)) {
                let problem =
                    format!("runs {whose} beside this operator, so both create pods for the same jobs");
                self.add(
                    Severity::Error,
                    &object,
                    problem,
                    &format!("delete it, because this operator takes over running jobs: {delete}"),
                );
            } else if works {
                let problem = format!("runs {whose} beside this operator");
                let remedy =
                    format!("restrict it to other kinds with --enable-scheme, or delete it: {delete}");
                self.add(Severity::Warning, &object, problem, &remedy);
            } else {
                let problem = format!("runs {whose}");
                self.add(
                    Severity::Note,
                    &object,
                    problem,
                    &format!("delete it before this operator is installed: {delete}"),
                );
            }
        }
        let is_unreadable = state.is_unreadable("deployments");
        if all.is_empty() && !is_unreadable {
            let problem = "missing: no Deployment runs an operator of training jobs";
            self.add(
                Severity::Note,
                "operator",
                problem,
                &(kinds.installation.install)(),
            );
        }
        for deployment in all
            .iter()
            .filter(|(operator, _)| *operator == OperatorVariant::This)
        {
            self.leader(state, deployment.1);
        }
        let held = held_leases(state);
        if held.len() > 1 {
            let names: Vec<_> = held.iter().map(|lease| name(lease).0).collect();
            let problem = format!("held in several namespaces: {}", names.join(", "));
            let remedy =
                "restrict each of these operators to its own namespace of jobs, or delete all but one";
            self.add(
                Severity::Warning,
                &format!("lease {}", program().lease),
                problem,
                remedy,
            );
        }
    }

    /// Reports an operator that should lead and does not.
    fn leader(&mut self, state: &ClusterState, deployment: &Value) {
        let (namespace, name) = name(deployment);
        let text = deployment["spec"]["template"]["spec"]["containers"].to_string();
        // The name of another lease is not known here, and neither is that of the namespace.
        let is_set = |flag: &str| text.contains(flag);
        let elects = is_set("--leader-elect")
            && !["--leader-elect=false", "--leader-election-"]
                .into_iter()
                .any(is_set);
        if !elects || ready_pods(deployment).1 == 0 || state.is_unreadable("leases") {
            return;
        }
        let own = held_leases(state)
            .into_iter()
            .find(|lease| self::name(lease).0 == namespace);
        let problem = match own {
            None => "no process holds it, so no jobs run".to_owned(),
            Some(lease) => match expired_since(lease, state.now) {
                Some((renewed, duration)) => format!(
                    "renewed {renewed} s ago and lasts {duration} s, so its holder has ended and no jobs run"
                ),
                None => return,
            },
        };
        let object = format!("lease {namespace}/{}", program().lease);
        let remedy = format!(
            "see the pods and the log: kubectl --namespace {namespace} get pods, and kubectl --namespace {namespace} logs \
             deployment/{name}"
        );
        self.add(Severity::Error, &object, problem, &remedy);
    }

    /// Reports jobs without a status from any operator.
    fn unseen_jobs(&mut self, state: &ClusterState, kinds: &Kinds) {
        let unseen = unseen_jobs(state, &expected_kinds(state, kinds));
        if !unseen.is_empty() {
            let problem = format!(
                "no operator has seen them for more than a minute: {}",
                list_names(&unseen)
            );
            let remedy = "check that an operator of their kinds and namespaces runs, leads and may patch their status; its \
                          log names what is missing";
            self.add(Severity::Error, "jobs", problem, remedy);
        }
    }

    fn permissions(&mut self, state: &ClusterState, kinds: &Kinds) {
        let kinds = expected_kinds(state, kinds);
        let is_optional = |resource: &str| {
            let mut objects = kinds.iter().flat_map(|kind| kind.objects());
            let object = objects.find(|object| object.plural == resource);
            object.is_some_and(|object| {
                training_job::Kind::only_variants_have(
                    kinds.iter().map(|kind| -> &training_job::Kind { kind }),
                    object,
                )
            })
        };
        let mut by_account: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for missing in &state.missing_permissions {
            let (verb, resource) = &missing.permission;
            by_account
                .entry((&missing.account, is_optional(resource)))
                .or_default()
                .push(format!("{verb} {resource}"));
        }
        for (((namespace, account), is_optional), permissions) in by_account {
            let object = format!("service account {namespace}/{account}");
            let (severity, which) = match is_optional {
                true => (Severity::Note, "lacks permissions that only some jobs need"),
                false => (Severity::Error, "lacks permissions"),
            };
            let problem = format!("{which}: {}", list_names(&permissions));
            let command = grant_command(namespace, account, kinds.iter().map(|kind| kind.name()));
            self.add(severity, &object, problem, &format!("run: {command}"));
        }
    }

    fn refused_jobs(&mut self, state: &ClusterState) {
        let refused: Vec<&Value> = state.jobs.iter().filter(|job| is_refused(job)).collect();
        let Some(first) = refused.first() else { return };
        let described = |job: &&Value| {
            let (namespace, name) = name(job);
            format!("{namespace}/{name} ({})", waiting_reason(job))
        };
        let all: Vec<String> = refused.iter().map(described).collect();
        let (namespace, name) = name(first);
        let kind = first["kind"].as_str().unwrap_or_default().to_lowercase();
        let problem = format!(
            "an object of them cannot be written, and the operator tries again: {}",
            list_names(&all)
        );
        let remedy = format!(
            "see the object and the cause: kubectl --namespace {namespace} describe {kind} {name}; after an hour, when events \
             are gone, they are in the operator's log"
        );
        self.add(Severity::Error, "jobs", problem, &remedy);
    }

    fn waiting_jobs(&mut self, state: &ClusterState) {
        let waiting = waiting_jobs(state);
        if !waiting.is_empty() {
            let problem = format!("waiting for more than 10 minutes: {}", list_names(&waiting));
            let remedy = "kubectl describe shows the events of a job";
            self.add(Severity::Note, "jobs", problem, remedy);
        }
    }

    fn stalled_jobs(&mut self, state: &ClusterState) {
        let stalled = stalled_jobs(state);
        if !stalled.is_empty() {
            let problem = format!(
                "stalled, which means that they run and make no progress: {}",
                list_names(&stalled)
            );
            let remedy = "the condition Stalled of a job has the replica and its last line; kubectl training logs shows more";
            self.add(Severity::Warning, "jobs", problem, remedy);
        }
    }

    /// Reports all missing permissions of the user in one finding.
    fn unreadable(&mut self, state: &ClusterState, kinds: &Kinds) {
        let mut by_verb: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (verb, resource) in &state.forbidden {
            by_verb.entry(verb).or_default().insert(resource);
        }
        let of_verb = |(verb, resources): (&&str, &BTreeSet<&str>)| {
            let resources: Vec<&str> = resources.iter().copied().collect();
            format!("{verb} {}", resources.join(", "))
        };
        let all: Vec<String> = by_verb.iter().map(of_verb).collect();
        if !all.is_empty() {
            let problem = format!("you are not allowed to {}", all.join(", or to "));
            let remedy = (kinds.installation.apply_reader_role)();
            self.add(Severity::Warning, "permissions", problem, &remedy);
        }
        for (what, why) in &state.unreadable {
            self.add(
                Severity::Warning,
                what,
                format!("cannot be read: {why}"),
                "run doctor again",
            );
        }
    }

    /// Reports jobs that another cluster runs, or that were copied from one.
    fn copies(&mut self, state: &ClusterState, kinds: &Kinds) {
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
            let remedy = "if the originals set these fields, set the annotations that replace them as well, because \
                          annotations are copied";
            self.add(Severity::Note, "jobs", problem, remedy);
        }
    }
}

/// Returns the command of a Deployment that an apply over another operator's has kept.
fn foreign_command(deployment: &Value) -> Option<&str> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
    let commands = containers
        .iter()
        .filter_map(|container| container["command"][0].as_str());
    commands
        .into_iter()
        .find(|command| !command.ends_with(&program().name))
}

/// Returns the first names of a list, and the number of the others, for the problem of a finding.
pub fn list_names(names: &[String]) -> String {
    let first = names[..names.len().min(MAX_LISTED_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_LISTED_NAMES) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Returns true if a webhook receives requests for jobs.
fn matches_jobs(webhook: &Value, kinds: &Kinds) -> bool {
    let rules = webhook["rules"].as_array().into_iter().flatten();
    let mut groups = rules.flat_map(|rule| rule["apiGroups"].as_array().into_iter().flatten());
    groups.any(|group| group.as_str().is_some_and(|group| kinds.is_own_group(group)))
}
