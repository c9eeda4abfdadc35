//! The permissions of an operator.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::rbac::v1::PolicyRule;
use training_job::Kind;
use training_job::job::ObjectKind;

use crate::program;

/// The verbs on the objects of jobs. `get` finds the owner of an object whose name is taken, and `patch` sets the labels of
/// one that another operator made for the same job.
const OBJECT_VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// Returns the command that grants a service account what an operator of these kinds needs.
pub fn grant_command<'a>(namespace: &str, account: &str, kinds: impl IntoIterator<Item = &'a str>) -> String {
    let kinds: String = kinds.into_iter().map(|kind| format!(" --kind {kind}")).collect();
    apply_printed(&format!(
        "rbac --namespace {namespace} --service-account {account}{kinds}"
    ))
}

/// Returns the command that lets a service account read the output of pods, for jobs with a progress policy.
pub fn grant_logs_command(namespace: &str, account: &str) -> String {
    apply_printed(&format!(
        "rbac --logs --namespace {namespace} --service-account {account}"
    ))
}

/// Returns the command that applies what this program prints for these arguments.
fn apply_printed(arguments: &str) -> String {
    format!(
        "{} {arguments} | kubectl apply --server-side --force-conflicts -f -",
        program().name
    )
}

/// Returns the rule that allows to read the output of pods. It is in no role by default.
pub fn rule_on_logs() -> PolicyRule {
    rule("", vec!["pods/log".to_owned()], &["get"])
}

fn rule(group: &str, resources: Vec<String>, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

/// Returns the rules of a role that manages jobs of these kinds in all namespaces where it is bound. That on Secrets, if a
/// kind has some, is the last one.
pub fn rules(kinds: &[Kind]) -> Vec<PolicyRule> {
    let mut jobs: BTreeMap<&str, Vec<&Kind>> = BTreeMap::new();
    for kind in kinds {
        jobs.entry(&kind.resource.group).or_default().push(kind);
    }
    let mut rules = Vec::new();
    for (group, kinds) in &jobs {
        let below = |name: &str| -> Vec<String> {
            let paths = kinds.iter().map(|kind| format!("{}{name}", kind.resource.plural));
            paths.collect()
        };
        rules.push(rule(group, below(""), &["list", "watch"]));
        let ending = kinds.iter().filter(|kind| has_time_to_live(kind));
        let ending: Vec<String> = ending.map(|kind| kind.resource.plural.clone()).collect();
        if !ending.is_empty() {
            rules.push(rule(group, ending, &["delete"]));
        }
        rules.push(rule(group, below("/status"), &["patch"]));
        // Some clusters let only those set a blocking owner reference who may write the owner's finalizers.
        rules.push(rule(group, below("/finalizers"), &["update"]));
    }
    let always = [
        ObjectKind::of::<Pod>(),
        ObjectKind::of::<Service>(),
        ObjectKind::of::<ConfigMap>(),
    ];
    let declared = kinds.iter().flat_map(|kind| kind.framework.all_objects());
    let mut objects: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for kind in always.into_iter().chain(declared) {
        let plurals = objects.entry(kind.group).or_default();
        if !plurals.iter().any(|plural| plural == kind.plural) {
            plurals.push(kind.plural.to_owned());
        }
    }
    let secrets = ObjectKind::of::<Secret>();
    let of_core = objects.get_mut(secrets.group);
    let of_secrets =
        of_core.and_then(|plurals| plurals.extract_if(.., |plural| plural == secrets.plural).next());
    let of_objects = objects.into_iter();
    rules.extend(of_objects.map(|(group, plurals)| rule(group, plurals, &OBJECT_VERBS)));
    rules.push(rule("", vec!["events".to_owned()], &["create", "patch"]));
    rules.extend(of_secrets.map(|plural| rule(secrets.group, vec![plural], &OBJECT_VERBS)));
    rules
}

/// Returns true for the rule on Secrets.
pub fn is_on_secrets(rule: &PolicyRule) -> bool {
    let secrets = ObjectKind::of::<Secret>().plural;
    rule.resources.as_deref().is_some_and(|all| all == [secrets])
}

/// Returns true if the operator deletes jobs of this kind some time after their end.
fn has_time_to_live(kind: &Kind) -> bool {
    let versions = kind.definition_without_rules().spec.versions;
    serde_json::to_string(&versions).is_ok_and(|text| text.contains("\"ttlSecondsAfterFinished\""))
}
