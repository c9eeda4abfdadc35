//! Reads the Deployments of operators.

use std::sync::Arc;

use serde_json::Value;
use training_job_program::program;
use training_job_review::Kind;

use crate::installation::{ClusterState, OperatorVariant};
use crate::kinds::Kinds;

/// Returns the operator that a Deployment runs. Returns `None` for other programs, and for a Deployment with 0 replicas.
pub(super) fn operator_of(deployment: &Value, kinds: &Kinds) -> Option<OperatorVariant> {
    match deployment["spec"]["replicas"] == 0 {
        true => None,
        false => (kinds.installation.operator_of)(deployment),
    }
}

/// Returns the kinds that the command line of this operator's Deployment enables.
pub(super) fn enabled_kinds<'k>(deployment: &Value, kinds: &'k Kinds) -> Vec<&'k Arc<Kind>> {
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
    let values = values.flat_map(|names| names.split(','));
    let named: Vec<&str> = values
        .filter_map(|name| Some(kinds.named(name)?.name()))
        .collect();
    let is_enabled = |kind: &&Arc<Kind>| match named.is_empty() {
        true => !program().optional_kinds.contains(&kind.name()),
        false => named.contains(&kind.name()),
    };
    kinds.iter().filter(is_enabled).collect()
}

/// Returns the kinds that run here: those of this operator's Deployments, or the default ones if there is no
/// Deployment.
pub(super) fn expected_kinds<'k>(state: &ClusterState, kinds: &'k Kinds) -> Vec<&'k Arc<Kind>> {
    let ours = state
        .deployments
        .iter()
        .filter(|d| operator_of(d, kinds) == Some(OperatorVariant::This));
    let ours: Vec<&str> = ours
        .flat_map(|deployment| enabled_kinds(deployment, kinds))
        .map(|kind| kind.name())
        .collect();
    let is_wanted = |kind: &&Arc<Kind>| match ours.is_empty() {
        true => !program().optional_kinds.contains(&kind.name()),
        false => ours.contains(&kind.name()),
    };
    kinds.iter().filter(is_wanted).collect()
}
