//! The rules of resources: their names, and the amounts that are requested and allowed.

use kube_schema::quantity::Quantity;
use kube_schema::{FieldPath, names};
use serde_json::Value;

use super::Found;

/// The resources of a container that have no prefix.
const PLAIN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const HUGE_PAGES: &str = "hugepages-";

/// The number of CPUs from which a request is doubtful, because no node has as many.
const DOUBTFUL_CPUS: &str = "2000";

/// The bytes below which a request is doubtful, because no program needs as few.
const DOUBTFUL_BYTES: &str = "1Mi";

fn amounts(value: &Value) -> impl Iterator<Item = (&String, &str, Quantity)> {
    let amounts = value.as_object().into_iter().flatten();
    amounts.filter_map(|(name, amount)| {
        let text = amount.as_str()?;
        Some((name, text, Quantity::parse(text)?))
    })
}

fn parsed(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_default()
}

/// True for a resource of Kubernetes itself.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_shared(name: &str) -> bool {
    is_native(name) && !name.starts_with(HUGE_PAGES)
}

/// Checks the resources of a container.
pub(super) fn check(resources: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    let (limits_at, requests_at) = (at.member("limits"), at.member("requests"));
    check_amounts(limits, limits_at, found);
    check_amounts(requests, requests_at, found);
    for (name, text, amount) in amounts(requests) {
        let at = requests_at.key(name);
        let limit = limits[name].as_str();
        match limit.and_then(|limit| Some((limit, Quantity::parse(limit)?))) {
            Some((limit, most)) if !is_shared(name) && amount != most => {
                let problem = format!("must equal the limit {limit} (is {text})");
                found
                    .errors
                    .push(at, problem, format!("set both to {limit}, or remove the request"));
            }
            Some((limit, most)) if amount > most => {
                let problem = format!("must be at most the limit {limit} (is {text})");
                found
                    .errors
                    .push(at, problem, format!("lower it, or raise the limit to {text}"));
            }
            None if limit.is_none() && !is_shared(name) => {
                let problem = "must have a limit, because it cannot be shared";
                found
                    .errors
                    .push(at, problem, format!("set limits[{name}] to {text}"));
            }
            _ => {}
        }
    }
    let names = || {
        [limits, requests]
            .into_iter()
            .flat_map(|list| amounts(list).map(|(name, ..)| name))
    };
    if names().any(|name| name.starts_with(HUGE_PAGES))
        && !names().any(|name| name == "cpu" || name == "memory")
    {
        found.errors.push(
            at,
            "must have cpu or memory beside huge pages",
            "set limits.memory",
        );
    }
}

/// Checks the names and amounts of a list.
pub(super) fn check_amounts(list: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    for (name, text, amount) in amounts(list) {
        let at = at.key(name);
        let page = name.strip_prefix(HUGE_PAGES);
        if is_native(name) && !PLAIN.contains(&name.as_str()) && page.is_none() && !name.contains('/') {
            let remedy = match name.to_ascii_lowercase().contains("gpu") {
                true => "use nvidia.com/gpu or amd.com/gpu",
                false => "use cpu, memory, ephemeral-storage, or a device such as nvidia.com/gpu",
            };
            found.errors.push(at, "unknown resource of a container", remedy);
        } else if !names::qualified(name).is_empty() || name.contains('/') && name.starts_with("requests.") {
            found.errors.push(
                at,
                "must be a valid name of a resource",
                "use a name such as nvidia.com/gpu",
            );
        } else if amount < Quantity::default() {
            found.errors.too_small(at, text, 0.0);
        } else if !is_native(name) && !amount.is_multiple_of(parsed("1")) {
            found.errors.push(
                at,
                format!("must be a whole number (is {text})"),
                "use 1 or more, because devices cannot be divided",
            );
        } else if page.is_some_and(|page| !amount.is_multiple_of(parsed(page))) {
            let page = page.unwrap_or_default();
            found.errors.push(
                at,
                format!("must be a multiple of {page} (is {text})"),
                format!("use a number of pages of {page}"),
            );
        } else {
            look_alike(name, text, amount, at, found);
        }
    }
}

/// Warns about amounts with the unit of another resource.
fn look_alike(name: &str, text: &str, amount: Quantity, at: FieldPath<'_>, found: &mut Found<'_>) {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if name == "cpu" && amount >= parsed(DOUBTFUL_CPUS) {
        let problem = format!(
            "{text} is {amount:.0} CPUs, more than a node has",
            amount = plain(text)
        );
        found
            .warnings
            .push(at, problem, format!("did you mean {number}m?"));
    } else if PLAIN[1..].contains(&name) && amount > Quantity::default() && amount < parsed(DOUBTFUL_BYTES) {
        let unit = if text.ends_with('m') { "M" } else { "G" };
        let problem = format!("{text} is {} bytes, too few for a program", plain(text));
        found
            .warnings
            .push(at, problem, format!("did you mean {number}{unit}i?"));
    }
}

fn plain(text: &str) -> f64 {
    kube_schema::quantity::amount(text).unwrap_or_default()
}

/// Checks the resources of the pod as a whole.
pub(super) fn check_pod(resources: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    check(resources, at, found);
    for list in ["limits", "requests"] {
        let list_at = at.member(list);
        for (name, ..) in amounts(&resources[list]) {
            if name != "cpu" && name != "memory" && !name.starts_with(HUGE_PAGES) {
                let problem = "must be a resource of the pod as a whole: cpu, memory or huge pages";
                found
                    .errors
                    .push(list_at.key(name), problem, "set it in a container");
            }
        }
    }
    if resources["claims"]
        .as_array()
        .is_some_and(|claims| !claims.is_empty())
    {
        found.errors.push(
            at.member("claims"),
            "must not be set for the pod as a whole",
            "set them in a container",
        );
    }
}

pub(super) fn not_negative(amount: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    if let Some(text) = amount.as_str().filter(|text| parsed(text) < Quantity::default()) {
        found.errors.too_small(at, text, 0.0);
    }
}

pub(super) fn positive(amount: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    if let Some(text) = amount.as_str().filter(|text| parsed(text) <= Quantity::default()) {
        found
            .errors
            .push(at, format!("must be more than 0 (is {text})"), "");
    }
}

/// True for a resource of a container that a variable may have.
pub(super) fn is_resource_field(field: &str) -> bool {
    let resource = field.strip_prefix("limits.").or(field.strip_prefix("requests."));
    resource.is_some_and(|name| PLAIN.contains(&name) || name.starts_with(HUGE_PAGES))
}

/// Checks the unit of a variable that is a resource of a container.
pub(super) fn check_divisor(field: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let resource = field["resource"].as_str().unwrap_or_default();
    let Some(text) = field["divisor"]
        .as_str()
        .filter(|text| parsed(text) != Quantity::default())
    else {
        return;
    };
    let divisor = parsed(text).to_string();
    let units: &[&str] = match resource.ends_with(".cpu") {
        true => &["1m", "1"],
        false => &[
            "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
        ],
    };
    if !units.contains(&divisor.as_str()) {
        let problem = format!("must be a unit of the resource (is {text})");
        found.errors.push(
            at.member("divisor"),
            problem,
            format!("use one of {}", units.join(", ")),
        );
    }
}
