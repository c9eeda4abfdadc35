//! The rules that need more than one line: fields that depend on each other, and the syntax of values.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use kube_schema::{FieldPath, names};
use serde_json::Value;

use super::{Found, visit};

/// The maximum size of the keys and values of a pod's annotations, in bytes.
const MAX_ANNOTATION_BYTES: usize = 262_144;

/// The maximum mode of a file: 0777.
const MAX_MODE: i64 = 0o777;

/// Modes that are those of a secret's files in octal, and mean others in decimal.
const DOUBTFUL_MODES: [i64; 4] = [400, 440, 444, 500];

/// The grace period of a pod without `terminationGracePeriodSeconds`, in seconds.
const DEFAULT_GRACE_SECONDS: i64 = 30;

pub(super) fn is_set(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

pub(super) fn has_items(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
}

pub(super) fn is_one_of(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|word| words.contains(&word))
}

pub(super) fn list_has(list: &Value, word: &str) -> bool {
    items(list).any(|item| item == word)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the length of the items of a list with a blank between two.
pub(super) fn joined_len(list: &Value) -> usize {
    items(list)
        .map(|item| text(item).len() + 1)
        .sum::<usize>()
        .saturating_sub(1)
}

pub(super) fn is_finalizer(name: &str) -> bool {
    ["kubernetes", "orphan", "foregroundDeletion"].contains(&name)
        || name.contains('/') && names::qualified(name).is_empty()
}

/// True for the addresses that the API server accepts. Numbers of an IPv4 address may begin with zeros.
pub(super) fn is_ip(address: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u64>().is_ok_and(|n| n < 256)
    };
    let parts: Vec<_> = address.split('.').collect();
    parts.len() == 4 && parts.iter().all(|part| is_number(part)) || address.parse::<Ipv6Addr>().is_ok()
}

/// True for a domain to search, which may have underscores and end with a dot.
pub(super) fn is_search(domain: &str) -> bool {
    domain == "." || names::subdomain(&domain.strip_suffix('.').unwrap_or(domain).replace('_', "x")).is_none()
}

pub(super) fn is_sysctl(name: &str) -> bool {
    let is_part = |part: &str| names::label_1123(&part.replace('_', "-")).is_none() && !part.starts_with('_');
    name.len() <= names::MAX_SUBDOMAIN_CHARS && name.split(['.', '/']).all(is_part)
}

pub(super) fn is_data_key(key: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    key.len() <= names::MAX_SUBDOMAIN_CHARS
        && key.chars().all(is_valid)
        && key != "."
        && !key.starts_with("..")
}

/// True for a relative path that stays below its root.
pub(super) fn is_descending(path: &str) -> bool {
    !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

/// True if `path` is one of the `fields`, or a label or annotation.
pub(super) fn is_field(path: &Value, fields: &[&str]) -> bool {
    let path = text(path);
    let of_map = ["metadata.labels['", "metadata.annotations['"];
    let key = of_map
        .iter()
        .find_map(|map| path.strip_prefix(map)?.strip_suffix("']"));
    match key {
        Some(key) => names::qualified(key).is_empty(),
        None => path.is_empty() || fields.contains(&path),
    }
}

pub(super) fn annotations(annotations: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let entries = annotations.as_object().into_iter().flatten();
    let bytes: usize = entries.map(|(key, value)| key.len() + text(value).len()).sum();
    if bytes > MAX_ANNOTATION_BYTES {
        let problem = format!("must be at most {MAX_ANNOTATION_BYTES} bytes in total (has {bytes})");
        found.errors.push(at, problem, "move the data to a ConfigMap");
    }
}

/// Checks the keys and values of labels.
pub(super) fn labels(labels: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        super::super::template::check_label(at.key(key), key, value.as_str(), found.errors);
    }
}

pub(super) fn mode(mode: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let Some(number) = mode.as_i64() else { return };
    // A mode without its leading zero is read as a decimal number.
    let is_octal = number >= 100 && number.to_string().bytes().all(|b| b < b'8') && number < 1_000;
    let remedy = if is_octal {
        format!("write 0{number}")
    } else {
        "use a mode such as 0644".to_owned()
    };
    if !(0..=MAX_MODE).contains(&number) {
        let problem = match number {
            ..0 => format!("must be from 0 to 0777 (is {number})"),
            _ => format!("must be at most 0777 (is {number}, which is 0{number:o})"),
        };
        found.errors.push(at, problem, remedy);
    } else if DOUBTFUL_MODES.contains(&number) {
        let problem = format!("{number} is a decimal number, and the mode is 0{number:o}");
        found
            .warnings
            .push(at, problem, format!("did you mean 0{number}?"));
    }
}

pub(super) fn port(port: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    if let Some(name) = port.as_str() {
        if names::port_name(name).is_some() {
            let problem = format!("must be a number or the name of a port (is {name:?})");
            found
                .errors
                .push(at, problem, "remove the quotes around a number");
        }
    } else {
        found.errors.check_range(at, port.as_i64(), 1..=65_535);
    }
}

/// Checks the values of a requirement of a selector by its operator.
pub(super) fn requirement(requirement: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let (operator, values) = (text(&requirement["operator"]), &requirement["values"]);
    let count = items(values).count();
    let at = at.member("values");
    match operator {
        "In" | "NotIn" if count == 0 => {
            found.errors.push(
                at,
                format!("must have a value for {operator}"),
                "add one, or use Exists or DoesNotExist",
            );
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            found.errors.push(
                at,
                format!("must be empty for {operator}"),
                "remove the values, or use In or NotIn",
            );
        }
        "Gt" | "Lt" if count != 1 => {
            found.errors.push(
                at,
                format!("must have one value for {operator} (has {count})"),
                "use a whole number",
            );
        }
        "Gt" | "Lt" if items(values).any(|value| text(value).parse::<i64>().is_err()) => {
            let problem = format!("must be a whole number for {operator}, because no node matches otherwise");
            found.warnings.push(at, problem, "use a number in quotes");
        }
        _ => {}
    }
}

pub(super) fn toleration(toleration: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| text(&toleration[field]));
    if key.is_empty() && operator != "Exists" {
        let problem = "must be Exists without a key, which tolerates all taints";
        found.errors.push(
            at.member("operator"),
            problem,
            "set the key of the taint, or operator: Exists",
        );
    }
    if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
        let problem = "must be NoExecute for tolerationSeconds";
        found.errors.push(
            at.member("effect"),
            problem,
            "set it, or remove tolerationSeconds",
        );
    }
    match operator {
        "" | "Equal" if names::label_value(value).is_some() => {
            let problem = format!("must be a valid label value (is {value:?})");
            found
                .errors
                .push(at.member("value"), problem, "use the value of the taint");
        }
        "Exists" if !value.is_empty() => {
            let problem = format!("must be empty for operator Exists (is {value:?})");
            found
                .errors
                .push(at.member("value"), problem, "remove it, or use operator: Equal");
        }
        "Lt" | "Gt" if value.parse::<i64>().is_err() => {
            let problem = format!("must be a whole number for operator {operator} (is {value:?})");
            found
                .errors
                .push(at.member("value"), problem, "use a number in quotes");
        }
        "Lt" | "Gt" => {
            let problem = format!(
                "{operator} is refused by API servers without the feature TaintTolerationComparisonOperators"
            );
            found
                .warnings
                .push(at.member("operator"), problem, "use Equal or Exists");
        }
        _ => {}
    }
}

/// Checks the keys of labels that a pod takes from itself for its selector.
pub(super) fn label_keys(term: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let at = at.member(field);
        if has_items(&term[field]) && term["labelSelector"].is_null() {
            found.errors.push(
                at,
                "must not be set without labelSelector",
                "add labelSelector, or remove it",
            );
        }
        for (n, key) in items(&term[field]).enumerate() {
            let key = text(key);
            if !names::qualified(key).is_empty() {
                found.errors.push(
                    at.item(n),
                    format!("must be a valid key (is {key:?})"),
                    "name a label of the pod",
                );
            } else if field == "matchLabelKeys" && list_has(&term["mismatchLabelKeys"], key) {
                let problem = format!("must not be in mismatchLabelKeys as well (is {key:?})");
                found.errors.push(at.item(n), problem, "remove one of them");
            } else if field == "matchLabelKeys" && term["labelSelector"]["matchLabels"].get(key).is_some() {
                let problem = format!("must not be in labelSelector as well (is {key:?})");
                found.errors.push(at.item(n), problem, "remove one of them");
            }
        }
    }
}

pub(super) fn spread_twice(constraints: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let mut seen = BTreeSet::new();
    for (n, spread) in items(constraints).enumerate() {
        let pair = (text(&spread["topologyKey"]), text(&spread["whenUnsatisfiable"]));
        if !seen.insert(pair) {
            let problem = format!("duplicate constraint on {} with {}", pair.0, pair.1);
            found.errors.push(at.item(n), problem, "keep one of them");
        }
    }
}

pub(super) fn dns_servers(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    if pod["dnsPolicy"] == "None" && !has_items(&pod["dnsConfig"]["nameservers"]) {
        let problem = "must be set for dnsPolicy None";
        found.errors.push(
            at.member("dnsConfig.nameservers"),
            problem,
            "add a name server, or remove dnsPolicy",
        );
    }
}

/// Checks the ports of nodes. In the network of the node, each port of a container is one.
pub(super) fn host_ports(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let of_node = pod["hostNetwork"] == true;
    let mut taken = BTreeSet::new();
    for list in ["initContainers", "containers"] {
        let list_at = at.member(list);
        for (n, container) in items(&pod[list]).enumerate() {
            let container_at = list_at.item(n);
            let ports_at = container_at.member("ports");
            if list == "initContainers" || n == 0 {
                taken.clear();
            }
            for (n, port) in items(&container["ports"]).enumerate() {
                let port_at = ports_at.item(n);
                let number = |field: &str| port[field].as_i64().filter(|number| *number != 0);
                let (own, of_container) = (number("hostPort"), number("containerPort"));
                if let Some(own) = own.filter(|_| of_node && own != of_container && list == "containers") {
                    let problem = format!("must equal containerPort with hostNetwork (is {own})");
                    found
                        .errors
                        .push(port_at.member("hostPort"), problem, "remove hostPort");
                }
                let Some(number) = own.or(of_container.filter(|_| of_node)) else {
                    continue;
                };
                let protocol = port["protocol"]
                    .as_str()
                    .filter(|p| !p.is_empty())
                    .unwrap_or("TCP");
                if !taken.insert((number, protocol, text(&port["hostIP"]))) {
                    let field = if own.is_some() {
                        "hostPort"
                    } else {
                        "containerPort"
                    };
                    let problem = format!("duplicate port {number} of the node");
                    found
                        .errors
                        .push(port_at.member(field), problem, "use another port");
                }
            }
        }
    }
}

pub(super) fn init_container(container: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let policy = text(&container["restartPolicy"]);
    if policy == "Always" {
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[field].is_null() {
            let problem = "must be set only in an init container with restartPolicy: Always";
            found.errors.push(
                at.member(field),
                problem,
                "remove it, or set that restartPolicy for a sidecar",
            );
        }
    }
    if !policy.is_empty() {
        let problem = "must be Always before Kubernetes 1.35";
        found.warnings.push(
            at.member("restartPolicy"),
            problem,
            "remove it, unless the cluster is newer",
        );
    }
}

pub(super) fn propagation(container: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    if container["securityContext"]["privileged"] == true {
        return;
    }
    let mut check = |mount: &Value, at: FieldPath<'_>| {
        if mount == "Bidirectional" {
            let problem = "must not be Bidirectional in a container that is not privileged";
            found.errors.push(at, problem, "use HostToContainer");
        }
    };
    visit(container, at, "volumeMounts[].mountPropagation", &mut check);
}

/// Checks that kernel parameters are not those of the node.
pub(super) fn sysctls(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    visit(pod, at, "securityContext.sysctls[].name", &mut |name, at| {
        let (name, of) = (text(name), |field: &str| pod[field] == true);
        let is_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|start| name.starts_with(start));
        for (field, is_refused) in [
            ("hostNetwork", name.starts_with("net.")),
            ("hostIPC", is_ipc || name == "kernel.sem"),
        ] {
            if is_refused && of(field) {
                found.errors.push(
                    at,
                    format!("must not be set with {field}"),
                    format!("remove it, or {field}"),
                );
            }
        }
    });
}

/// Checks that containers use claims of the pod.
pub(super) fn claims(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let is_known = |name: &Value| items(&pod["resourceClaims"]).any(|claim| claim["name"] == *name);
    let path = "containers|initContainers[].resources.claims[].name";
    visit(pod, at, path, &mut |name, at| {
        if !is_known(name) {
            found.errors.push(
                at,
                format!("must name one of the pod's resourceClaims (is {name})"),
                "add the claim there",
            );
        }
    });
}

pub(super) fn sleeps(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let grace = pod["terminationGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(DEFAULT_GRACE_SECONDS);
    let path = "containers|initContainers[].lifecycle.postStart|preStop.sleep.seconds";
    visit(pod, at, path, &mut |seconds, at| {
        if let Some(seconds) = seconds
            .as_i64()
            .filter(|seconds| *seconds < 0 || *seconds > grace.max(1))
        {
            let problem =
                format!("must be from 0 to the {grace} s of terminationGracePeriodSeconds (is {seconds})");
            found
                .errors
                .push(at, problem, "raise terminationGracePeriodSeconds of the pod");
        }
    });
}

pub(super) fn volume_source(volume: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let members = volume.as_object().into_iter().flatten();
    let sources: Vec<_> = members
        .filter(|(key, source)| *key != "name" && !source.is_null())
        .collect();
    if let [_, _, ..] = &sources[..] {
        let names: Vec<_> = sources.iter().map(|(name, _)| name.as_str()).collect();
        let problem = format!("must have only one source (has {})", names.join(" and "));
        found.errors.push(at, problem, "use a volume for each");
    }
}

/// Checks that devices are claims, and that no volume is both mounted and a device.
pub(super) fn devices(pod: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    for list in ["containers", "initContainers"] {
        let list_at = at.member(list);
        for (n, container) in items(&pod[list]).enumerate() {
            let container_at = list_at.item(n);
            let devices_at = container_at.member("volumeDevices");
            for (n, device) in items(&container["volumeDevices"]).enumerate() {
                let device_at = devices_at.item(n);
                let named = |other: &&Value| other["name"] == device["name"];
                let volume = items(&pod["volumes"]).find(named);
                if volume.is_some_and(|v| v["persistentVolumeClaim"].is_null() && v["ephemeral"].is_null()) {
                    let problem = "must be a persistentVolumeClaim or ephemeral volume";
                    found.errors.push(
                        device_at.member("name"),
                        problem,
                        "mount it in volumeMounts instead",
                    );
                }
                let mounts = || items(&container["volumeMounts"]);
                if mounts().any(|mount| mount["name"] == device["name"]) {
                    let problem = "must not be in volumeMounts as well";
                    found
                        .errors
                        .push(device_at.member("name"), problem, "remove one of them");
                }
                if mounts().any(|mount| mount["mountPath"] == device["devicePath"]) {
                    let problem = "must not be a path of volumeMounts as well";
                    found
                        .errors
                        .push(device_at.member("devicePath"), problem, "use another path");
                }
                if !text(&device["devicePath"]).split('/').all(|part| part != "..") {
                    let problem = "must not contain \"..\"";
                    found
                        .errors
                        .push(device_at.member("devicePath"), problem, "use the path without it");
                }
            }
        }
    }
}

/// Checks that the sources of a projected volume have different files.
pub(super) fn projected_paths(projected: &Value, at: FieldPath<'_>, found: &mut Found<'_>) {
    let mut seen = BTreeSet::new();
    let paths = "sources[].secret|configMap|downwardAPI.items[].path";
    visit(projected, at, paths, &mut |path, at| {
        if is_set(path) && !seen.insert(text(path).to_owned()) {
            found
                .errors
                .push(at, format!("duplicate path {path}"), "use another path");
        }
    });
}
