//! Pods: the API server's defaults and checks, and the changes that it allows for a running pod.

use serde_json::{Map, Value, json};

use kube_schema::{FieldPath, names};

use crate::kinds::decode;
use crate::object::{cause::Cause, document::Document, json::array, metadata};

pub(crate) fn set_defaults(pod: &mut Document) {
    pod.change("spec", |spec| {
        if let Some(spec) = spec.as_object_mut() {
            complete_spec(spec);
        }
    });
}

fn complete_spec(spec: &mut Map<String, Value>) {
    let mut default = |key: &str, value: Value| {
        spec.entry(key).or_insert(value);
    };
    default("restartPolicy", Value::from("Always"));
    default("terminationGracePeriodSeconds", Value::from(30));
    default("dnsPolicy", Value::from("ClusterFirst"));
    default("schedulerName", Value::from("default-scheduler"));
    default("enableServiceLinks", Value::from(true));
    default("securityContext", json!({}));
    for key in ["containers", "initContainers"] {
        for container in spec
            .get_mut(key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(container) = container.as_object_mut() {
                default_container(container);
            }
        }
    }
    for volume in spec
        .get_mut("volumes")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(volume) = volume.as_object_mut() {
            default_volume(volume);
        }
    }
}

/// Sets the fields that the default admission plug-ins add to a new pod.
pub(crate) fn admit(pod: &mut Document) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry("priority").or_insert_with(|| Value::from(0));
    spec.entry("preemptionPolicy")
        .or_insert_with(|| Value::from("PreemptLowerPriority"));
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|known| {
            let given = |member: &str| known.get(member).and_then(Value::as_str).unwrap_or_default();
            (given("key") == key || given("key").is_empty()) && matches!(given("effect"), "NoExecute" | "")
        });
        if !tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let pull = if is_latest(image) {
        "Always"
    } else {
        "IfNotPresent"
    };
    container
        .entry("imagePullPolicy")
        .or_insert_with(|| Value::from(pull));
    container
        .entry("terminationMessagePath")
        .or_insert_with(|| Value::from("/dev/termination-log"));
    container
        .entry("terminationMessagePolicy")
        .or_insert_with(|| Value::from("File"));
    container.entry("resources").or_insert_with(|| json!({}));
    for port in container
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(port) = port.as_object_mut() {
            port.entry("protocol").or_insert_with(|| Value::from("TCP"));
        }
    }
    for env in container
        .get_mut("env")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let Some(source) = env.get_mut("valueFrom") else {
            continue;
        };
        for (reference, key, default) in [
            ("fieldRef", "apiVersion", "v1"),
            ("resourceFieldRef", "divisor", "0"),
        ] {
            if let Some(reference) = source.get_mut(reference).and_then(Value::as_object_mut) {
                reference.entry(key).or_insert_with(|| Value::from(default));
            }
        }
    }
    if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut)
        && let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned()
    {
        let requests = resources.entry("requests").or_insert_with(|| json!({}));
        if let Some(requests) = requests.as_object_mut() {
            for (name, quantity) in limits {
                requests.entry(name).or_insert(quantity);
            }
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            for (key, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                probe.entry(key).or_insert_with(|| Value::from(value));
            }
            if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
                get.entry("path").or_insert_with(|| Value::from("/"));
                get.entry("scheme").or_insert_with(|| Value::from("HTTP"));
            }
        }
    }
}

fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or(image);
    !last.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn default_volume(volume: &mut Map<String, Value>) {
    if volume.len() <= 1 {
        volume.entry("emptyDir").or_insert_with(|| json!({}));
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            source.entry("defaultMode").or_insert_with(|| Value::from(0o644));
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        path.entry("type").or_insert_with(|| Value::from(""));
    }
}

/// Sets a condition of a pod, replacing one of the same type.
pub(crate) fn add_condition(pod: &mut Document, condition: Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    conditions.retain(|known| known.get("type") != condition.get("type"));
    conditions.push(condition);
}

/// Sets the members that a status always has.
pub(crate) fn complete_status(status: &mut Map<String, Value>) {
    decode::show_times(status, ["lastProbeTime", "lastTransitionTime"]);
    if let Some(address) = status.get("podIP").filter(|address| *address != "").cloned() {
        status.entry("podIPs").or_insert_with(|| json!([{"ip": address}]));
    }
    for key in ["containerStatuses", "initContainerStatuses"] {
        let containers = status.get_mut(key).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            for state in ["state", "lastState"] {
                let state = container.entry(state).or_insert_with(|| json!({}));
                for (phase, times) in [
                    ("running", &["startedAt"][..]),
                    ("terminated", &["startedAt", "finishedAt"]),
                ] {
                    if let Some(phase) = state.get_mut(phase).and_then(Value::as_object_mut) {
                        for time in times {
                            phase.entry(*time).or_insert(Value::Null);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the status of a new pod.
pub(crate) fn first_status(pod: &Document) -> Value {
    json!({"phase": "Pending", "qosClass": quality_of_service(pod)})
}

fn quality_of_service(pod: &Document) -> &'static str {
    let spec = pod.get("spec");
    let containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|key| array(spec.and_then(|s| s.get(key))))
    };
    let quantity = |container: &Value, list: &str, name: &str| -> Option<Value> {
        container.get("resources")?.get(list)?.get(name).cloned()
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers() {
        for name in ["cpu", "memory"] {
            let (limit, request) = (
                quantity(container, "limits", name),
                quantity(container, "requests", name),
            );
            any |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && limit == request;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Rejects a value outside a fixed set.
pub(crate) fn one_of(
    field: impl Into<String>,
    value: Option<&Value>,
    allowed: &[&str],
    causes: &mut Vec<Cause>,
) {
    let Some(value) = value else { return };
    if !value.as_str().is_some_and(|text| allowed.contains(&text)) {
        let allowed: Vec<String> = allowed.iter().map(|text| format!("{text:?}")).collect();
        causes.push(Cause::unsupported(field, value, &allowed));
    }
}

/// Rejects a number that is not a port.
pub(crate) fn port_number(field: impl Into<String>, value: Option<&Value>, causes: &mut Vec<Cause>) {
    match value.and_then(Value::as_i64) {
        None | Some(0) => causes.push(Cause::required(field, "")),
        Some(1..=65535) => {}
        Some(number) => {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(field, &Value::from(number), why));
        }
    }
}

pub(crate) fn validate(pod: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let mut volumes: Vec<&str> = Vec::new();
    let list = FieldPath::At("spec.volumes");
    for (index, volume) in array(spec.get("volumes")).enumerate() {
        let name = text(volume, "name");
        named(list.item(index), name, &mut volumes, &mut causes);
    }
    let mut seen = Vec::new();
    let of_spec = FieldPath::At("spec");
    for key in ["containers", "initContainers"] {
        let list = of_spec.member(key);
        for (index, container) in array(spec.get(key)).enumerate() {
            let field = list.item(index);
            named(field, text(container, "name"), &mut seen, &mut causes);
            validate_container(field, container, &volumes, &mut causes);
        }
    }
    if array(spec.get("containers")).next().is_none() {
        causes.push(Cause::required("spec.containers", ""));
    }
    one_of(
        "spec.restartPolicy",
        spec.get("restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &mut causes,
    );
    one_of(
        "spec.dnsPolicy",
        spec.get("dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &mut causes,
    );
    if let Some(deadline) = spec.get("activeDeadlineSeconds").and_then(Value::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(
            "spec.activeDeadlineSeconds",
            &Value::from(deadline),
            why,
        ));
    }
    for key in ["hostname", "subdomain"] {
        let value = text(spec, key);
        if let Some(why) = (!value.is_empty()).then(|| names::label_1123(value)).flatten() {
            causes.push(Cause::invalid_text(format!("spec.{key}"), value, &why));
        }
    }
    let node = text(spec, "nodeName");
    if let Some(why) = (!node.is_empty()).then(|| names::subdomain(node)).flatten() {
        causes.push(Cause::invalid_text("spec.nodeName", node, &why));
    }
    if let Some(selector) = spec.get("nodeSelector") {
        metadata::labels("spec.nodeSelector", selector, &mut causes);
    }
    causes
}

/// Checks the name of the item at `field`: it must be a DNS label and unique.
fn named<'a>(field: FieldPath<'_>, name: &'a str, seen: &mut Vec<&'a str>, causes: &mut Vec<Cause>) {
    let field = field.member("name");
    if name.is_empty() {
        causes.push(Cause::required(field, ""));
    } else if let Some(why) = names::label_1123(name) {
        causes.push(Cause::invalid_text(field, name, &why));
    } else if seen.contains(&name) {
        causes.push(Cause::duplicate(field, &Value::from(name)));
    }
    seen.push(name);
}

fn validate_container(field: FieldPath<'_>, container: &Value, volumes: &[&str], causes: &mut Vec<Cause>) {
    let image = text(container, "image");
    if image.is_empty() {
        causes.push(Cause::required(field.member("image"), ""));
    } else if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid_text(field.member("image"), image, why));
    }
    let pull = container.get("imagePullPolicy");
    one_of(
        field.member("imagePullPolicy"),
        pull,
        &["Always", "IfNotPresent", "Never"],
        causes,
    );
    let mut port_names = Vec::new();
    let ports = field.member("ports");
    for (index, port) in array(container.get("ports")).enumerate() {
        let field = ports.item(index);
        let name = text(port, "name");
        if !name.is_empty() {
            if let Some(why) = names::port_name(name) {
                causes.push(Cause::invalid_text(field.member("name"), name, &why));
            } else if port_names.contains(&name) {
                causes.push(Cause::duplicate(field.member("name"), &Value::from(name)));
            }
            port_names.push(name);
        }
        port_number(field.member("containerPort"), port.get("containerPort"), causes);
        one_of(
            field.member("protocol"),
            port.get("protocol"),
            &["SCTP", "TCP", "UDP"],
            causes,
        );
    }
    let variables = field.member("env");
    for (index, env) in array(container.get("env")).enumerate() {
        let field = variables.item(index);
        let field = field.member("name");
        let name = text(env, "name");
        if name.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if let Some(why) = names::env_name(name) {
            causes.push(Cause::invalid_text(field, name, &why));
        }
    }
    let mounts = field.member("volumeMounts");
    for (index, mount) in array(container.get("volumeMounts")).enumerate() {
        let field = mounts.item(index);
        let name = text(mount, "name");
        if name.is_empty() {
            causes.push(Cause::required(field.member("name"), ""));
        } else if !volumes.contains(&name) {
            causes.push(Cause::not_found(field.member("name"), name));
        }
        if text(mount, "mountPath").is_empty() {
            causes.push(Cause::required(field.member("mountPath"), ""));
        }
    }
}

/// Rejects changes that an update of a pod must not make.
pub(crate) fn validate_update(new: &Document, old: &Document) -> Vec<Cause> {
    if new.has_same("spec", old) {
        return Vec::new();
    }
    let frozen = |pod: &Document| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        if let Some(map) = spec.as_object_mut() {
            for key in [
                "activeDeadlineSeconds",
                "tolerations",
                "schedulingGates",
                "terminationGracePeriodSeconds",
            ] {
                map.remove(key);
            }
            for key in ["containers", "initContainers"] {
                for container in map
                    .get_mut(key)
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    if let Some(container) = container.as_object_mut() {
                        container.remove("image");
                    }
                }
            }
        }
        spec
    };
    let count = |pod: &Document, key: &str| array(pod.get("spec").and_then(|spec| spec.get(key))).count();
    for (key, word) in [
        ("containers", "containers"),
        ("initContainers", "init containers"),
    ] {
        if count(new, key) != count(old, key) {
            let why = format!("pod updates may not add or remove {word}");
            return vec![Cause::forbidden(format!("spec.{key}"), &why)];
        }
    }
    let deadline = |pod: &Document| {
        pod.get("spec")
            .and_then(|spec| spec.get("activeDeadlineSeconds")?.as_i64())
    };
    let field = "spec.activeDeadlineSeconds";
    match (deadline(old), deadline(new)) {
        (Some(before), Some(after)) if after > before => {
            let why = "must be less than or equal to previous value";
            return vec![Cause::invalid(field, &Value::from(after), why)];
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            return vec![Cause::invalid(field, &Value::Null, why)];
        }
        _ => {}
    }
    if frozen(new) == frozen(old) {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,\
               `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
               existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
               previously negative)";
    vec![Cause::forbidden("spec", why)]
}
