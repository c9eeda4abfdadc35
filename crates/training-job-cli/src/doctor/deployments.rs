//! Reads the Deployments of operators.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use super::installation::OperatorVariant;
use crate::kinds::{Kind, Kinds};

/// Returns the operator that a Deployment runs. Returns `None` for other programs, and for a Deployment with 0 replicas.
pub(super) fn operator_of(deployment: &Value, kinds: &Kinds) -> Option<OperatorVariant> {
    match deployment["spec"]["replicas"] == 0 {
        true => None,
        false => (kinds.installation.operator_of)(deployment),
    }
}

/// Returns the kinds that the command line of this operator's Deployment enables.
pub(super) fn enabled_kinds<'k>(deployment: &Value, kinds: &'k Kinds) -> Vec<&'k Rc<Kind>> {
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
    let wanted = |(n, _): &(usize, &Rc<Kind>)| named.is_empty() || named.contains(n);
    kinds
        .iter()
        .enumerate()
        .filter(wanted)
        .map(|(_, kind)| kind)
        .collect()
}
