//! Defaults and validation of services.

use serde_json::{Map, Value, json};

use kube_schema::{FieldPath, names};

use crate::kinds::pods::{one_of, port_number};
use crate::object::{cause::Cause, document::Document, json::array, metadata};

/// Sets defaults; `address` returns a cluster address if the service needs one.
pub(crate) fn set_defaults(service: &mut Document, address: impl FnOnce() -> String) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    spec.entry("type").or_insert_with(|| Value::from("ClusterIP"));
    spec.entry("sessionAffinity")
        .or_insert_with(|| Value::from("None"));
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(port) = port.as_object_mut() {
            port.entry("protocol").or_insert_with(|| Value::from("TCP"));
            let number = port.get("port").cloned().unwrap_or_default();
            let target = port.entry("targetPort").or_insert_with(|| number.clone());
            if target == &Value::from(0) || target == &Value::from("") {
                *target = number;
            }
        }
    }
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return;
    }
    spec.entry("internalTrafficPolicy")
        .or_insert_with(|| Value::from("Cluster"));
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy")
        .or_insert_with(|| Value::from("SingleStack"));
    let ip = match spec.get("clusterIP").and_then(Value::as_str) {
        Some(ip) if !ip.is_empty() => ip.to_owned(),
        _ => address(),
    };
    spec.insert("clusterIPs".to_owned(), json!([ip]));
    spec.insert("clusterIP".to_owned(), Value::from(ip));
}

/// Returns the status of a new service.
pub(crate) fn first_status() -> Value {
    json!({"loadBalancer": {}})
}

/// Keeps the cluster address in an update without one.
pub(crate) fn keep_address(new: &mut Document, old: &Document) {
    let old_spec = old.get("spec").and_then(Value::as_object);
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
        return;
    }
    for key in ["clusterIP", "clusterIPs"] {
        let absent = match spec.get(key) {
            None => true,
            Some(value) => value == "",
        };
        if absent && let Some(value) = old_spec.and_then(|spec: &Map<String, Value>| spec.get(key)) {
            spec.insert(key.to_owned(), value.clone());
        }
    }
}

pub(crate) fn validate(service: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = service.get("spec").unwrap_or(&Value::Null);
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    let headless = text("clusterIP") == "None";
    let external = text("type") == "ExternalName";
    let ports: Vec<&Value> = array(spec.get("ports")).collect();
    if ports.is_empty() && !headless && !external {
        causes.push(Cause::required("spec.ports", ""));
    }
    let (mut seen_names, mut seen_ports) = (Vec::new(), Vec::new());
    let list = FieldPath::At("spec.ports");
    for (index, port) in ports.iter().enumerate() {
        let field = list.item(index);
        let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(Cause::required(field.member("name"), ""));
            }
        } else if let Some(why) = names::label_1123(name) {
            causes.push(Cause::invalid_text(field.member("name"), name, &why));
        } else if seen_names.contains(&name) {
            causes.push(Cause::duplicate(field.member("name"), &Value::from(name)));
        }
        seen_names.push(name);
        valid_port(field.member("port"), port.get("port"), &mut causes);
        one_of(
            field.member("protocol"),
            port.get("protocol"),
            &["SCTP", "TCP", "UDP"],
            &mut causes,
        );
        match port.get("targetPort") {
            Some(Value::String(name)) => {
                if let Some(why) = names::port_name(name) {
                    causes.push(Cause::invalid_text(field.member("targetPort"), name, &why));
                }
            }
            other => valid_port(field.member("targetPort"), other, &mut causes),
        }
        let key = (port.get("port"), port.get("protocol"));
        if seen_ports.contains(&key) {
            let (number, protocol) = (key.0.unwrap_or(&Value::Null), key.1.unwrap_or(&Value::Null));
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            causes.push(Cause::duplicate_text(field, &shown));
        }
        seen_ports.push(key);
    }
    if let Some(selector) = spec.get("selector") {
        metadata::labels("spec.selector", selector, &mut causes);
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of("spec.type", spec.get("type"), &kinds, &mut causes);
    one_of(
        "spec.sessionAffinity",
        spec.get("sessionAffinity"),
        &["ClientIP", "None"],
        &mut causes,
    );
    if headless && matches!(text("type"), "NodePort" | "LoadBalancer") {
        let why = "may not be set to 'None' for LoadBalancer services";
        causes.push(Cause::invalid_text("spec.clusterIPs[0]", "None", why));
    }
    if external && text("externalName").is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    causes
}

/// Checks a port number. Unlike in pods, 0 is invalid instead of missing.
fn valid_port(field: FieldPath<'_>, value: Option<&Value>, causes: &mut Vec<Cause>) {
    match value.and_then(Value::as_i64) {
        Some(0) => causes.push(Cause::invalid(
            field,
            &Value::from(0),
            "must be between 1 and 65535, inclusive",
        )),
        _ => port_number(field, value, causes),
    }
}

pub(crate) fn validate_update(new: &Document, old: &Document) -> Vec<Cause> {
    let ip = |service: &Document| {
        service
            .get("spec")
            .and_then(|spec| spec.get("clusterIP"))
            .cloned()
    };
    let kind = |service: &Document| service.get("spec").and_then(|spec| spec.get("type")).cloned();
    let external = Value::from("ExternalName");
    if kind(new) == Some(external.clone()) || kind(old) == Some(external) || ip(new) == ip(old) {
        return Vec::new();
    }
    let why = "may not change once set";
    vec![Cause::invalid("spec.clusterIPs[0]", &json!([ip(new)]), why)]
}
