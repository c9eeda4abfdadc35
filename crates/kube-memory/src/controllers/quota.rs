//! Resource quotas limit the number of objects in a namespace. Only objects are counted, not processors and memory.

use std::{collections::BTreeMap, sync::Arc};

use kube_schema::quantity::amount;
use serde_json::{Value, json};

use crate::kinds::{Family, Target};
use crate::object::document::Document;
use crate::request::failure::{ApiResult, Failure};
use crate::server::Server;
use crate::store::object::Object;

/// The resources that a quota also counts by their plain name. All others need the prefix `count/`.
const OWN_NAMES: [&str; 4] = ["configmaps", "pods", "secrets", "services"];

/// Numbers of objects, by the resource's name in quotas.
type Counts = BTreeMap<String, u64>;

impl Server {
    /// Rejects a new object that exceeds a quota of its namespace.
    pub(crate) fn admit_quota(&self, target: &Target, namespace: &str, body: &Document) -> ApiResult<()> {
        for quota in self.quotas(namespace) {
            let limits = limits(quota);
            let mut exceeded = Vec::new();
            for name in names(target) {
                let Some(limit) = limits.get(&name) else { continue };
                let used = self.used(&name, namespace);
                if used >= *limit {
                    exceeded.push((name, used, *limit));
                }
            }
            if !exceeded.is_empty() {
                exceeded.sort();
                return Err(quota_error(target, body, quota.name(), &exceeded));
            }
        }
        Ok(())
    }

    /// Updates the status of every quota.
    pub(crate) fn count_quotas(&mut self) {
        let Some(target) = self.store.registry.find("", "v1", "resourcequotas") else {
            return;
        };
        let quotas: Vec<Arc<Object>> = self.store.iter(target.id, None, None).cloned().collect();
        for quota in quotas {
            let used: BTreeMap<String, String> = limits(&quota)
                .into_keys()
                .map(|name| {
                    let used = self.used(&name, quota.namespace());
                    (name, used.to_string())
                })
                .collect();
            let hard = quota.get("spec").and_then(|spec| spec.get("hard"));
            let status = json!({"hard": hard, "used": used});
            if quota.get("status") != Some(&status) && !quota.is_deleting() {
                let mut document = quota.document().clone();
                document.insert("status", status);
                self.store
                    .replace(&target, &quota, document, quota.applied.clone());
            }
        }
    }

    fn quotas(&self, namespace: &str) -> impl Iterator<Item = &Arc<Object>> {
        let target = self.store.registry.find("", "v1", "resourcequotas");
        target
            .into_iter()
            .flat_map(move |target| self.store.iter(target.id, Some(namespace), None))
    }

    /// Returns the number of a namespace's objects of a resource, given by its name in quotas.
    fn used(&self, name: &str, namespace: &str) -> u64 {
        let (plural, all) = match name.strip_prefix("count/") {
            Some(plural) => (plural, true),
            None => (name, false),
        };
        let Some(target) = self.store.registry.by_plural(plural) else {
            return 0;
        };
        let objects = self.store.iter(target.id, Some(namespace), None);
        // `pods` counts the pods that have not ended, `count/pods` counts all.
        let counts = |object: &&Arc<Object>| all || target.kind.family != Family::Pod || !has_ended(object);
        objects.filter(counts).count() as u64
    }
}

fn has_ended(pod: &Object) -> bool {
    let phase = pod.get("status").and_then(|status| status.get("phase"));
    matches!(phase.and_then(Value::as_str), Some("Succeeded" | "Failed"))
}

/// Returns the resource's names in quotas.
fn names(target: &Target) -> Vec<String> {
    let mut names = vec![format!("count/{}", target.resource())];
    if target.group().is_empty() && OWN_NAMES.contains(&target.kind.plural.as_str()) {
        names.push(target.kind.plural.clone());
    }
    names
}

/// Returns the limits on numbers of objects.
fn limits(quota: &Object) -> Counts {
    let hard = quota.get("spec").and_then(|spec| spec.get("hard"));
    let hard = hard.and_then(Value::as_object).into_iter().flatten();
    hard.filter(|(name, _)| name.starts_with("count/") || OWN_NAMES.contains(&name.as_str()))
        .filter_map(|(name, limit)| {
            let limit = limit.as_str().map_or_else(|| limit.as_f64(), amount)?;
            Some((name.clone(), limit.max(0.0) as u64))
        })
        .collect()
}

fn quota_error(
    target: &Target,
    body: &Document,
    quota: &str,
    exceeded: &[(String, u64, u64)],
) -> Box<Failure> {
    let listed = |number: fn(&(String, u64, u64)) -> u64| {
        let parts = exceeded.iter().map(|one| format!("{}={}", one.0, number(one)));
        parts.collect::<Vec<_>>().join(",")
    };
    let (requested, used, limited) = (listed(|_| 1), listed(|one| one.1), listed(|one| one.2));
    let why = format!("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}");
    Failure::forbidden(target, body.meta_text("name"), &why)
}
