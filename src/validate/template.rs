//! Checks a role's pod template for the fields that a kind requires, and for values that the API server would reject in
//! every pod.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use kube_schema::names::{MAX_LABEL_CHARS, MAX_PORT_NAME_CHARS};
use kube_schema::quantity::is_quantity;
use kube_schema::{FieldPath, names};

use super::texts::MUST_BE_SET;
use crate::job::{AnyJob, FieldErrors, Role};

/// Checks the template of a role, and returns the index of the framework's container in it and the number of the framework's port.
pub(super) fn check(
    job: &dyn AnyJob,
    role: &Role<'_>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) -> (Option<usize>, i32) {
    let (framework, template) = (job.framework(), role.template());
    let container = framework.container_name(role.definition);
    let (port_name, default_port) = framework
        .ports_of(role.definition)
        .first()
        .copied()
        .unwrap_or_default();
    if let Some(metadata) = &template.metadata {
        check_labels(path.member("metadata"), metadata, errors);
    }
    let containers = role.containers();
    let spec = path.member("spec");
    let at = spec.member("containers");
    if containers.is_empty() {
        errors.no_container(at, container);
        return (None, default_port);
    }
    let inits = template
        .spec
        .as_ref()
        .and_then(|s| s.init_containers.as_deref())
        .unwrap_or_default();
    let main = job.framework_container(role);
    // A container without a name is probably the framework's.
    let unnamed = containers.iter().position(|container| container.name.is_empty());
    let unnamed = unnamed.filter(|_| main.is_none() && !container.is_empty());
    if let Some(n) = unnamed {
        errors.push(
            at.item(n).member("name"),
            MUST_BE_SET,
            format!("set name: {container}"),
        );
    }
    let mut seen = BTreeSet::new();
    for (list_name, containers) in [("containers", containers), ("initContainers", inits)] {
        let list = spec.member(list_name);
        for (n, container) in containers.iter().enumerate() {
            let at = list.item(n);
            if !seen.insert(container.name.as_str()) {
                errors.container_twice(at.member("name"), &container.name);
            }
            if names::label_1123(&container.name).is_some() && (list_name, Some(n)) != ("containers", unnamed)
            {
                errors.bad_container_name(at.member("name"), &container.name);
            }
            check_container(at, container, errors);
        }
    }
    let port = match main.and_then(|main| containers.get(main)) {
        Some(main) => framework_port(main, port_name),
        None => {
            if unnamed.is_none() {
                errors.not_among_containers(at, container);
            }
            None
        }
    };
    (main, port.unwrap_or(default_port))
}

/// Returns the number of the port of this name in a container.
pub(crate) fn framework_port(container: &Container, port_name: &str) -> Option<i32> {
    let ports = container.ports.as_deref().unwrap_or_default();
    ports
        .iter()
        .find(|p| p.name.as_deref() == Some(port_name))
        .map(|p| p.container_port)
}

/// Checks the labels and annotations of `metadata`, which is at `path`.
pub(super) fn check_labels(path: FieldPath<'_>, metadata: &ObjectMeta, errors: &mut FieldErrors) {
    for (field, map, is_label) in [
        ("labels", &metadata.labels, true),
        ("annotations", &metadata.annotations, false),
    ] {
        let field = path.member(field);
        for (key, value) in map.iter().flatten() {
            check_label(field.key(key), key, is_label.then_some(value.as_str()), errors);
        }
    }
}

/// Checks the key of a label or annotation, and the value if it is that of a label.
pub(super) fn check_label(at: FieldPath<'_>, key: &str, value: Option<&str>, errors: &mut FieldErrors) {
    if !names::qualified(key).is_empty() {
        errors.push(
            at,
            format!("must be a valid key (is {key:?})"),
            format!(
                "use at most {MAX_LABEL_CHARS} letters, digits, '-', '_' and '.', optionally after a DNS name and '/'"
            ),
        );
    } else if let Some(value) = value.filter(|value| names::label_value(value).is_some()) {
        errors.push(
            at,
            format!("must be a valid label value (is {value:?})"),
            format!(
                "use at most {MAX_LABEL_CHARS} letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            ),
        );
    }
}

fn check_container(path: FieldPath<'_>, container: &Container, errors: &mut FieldErrors) {
    if container.image.as_deref().unwrap_or_default().trim().is_empty() {
        errors.no_image(path.member("image"));
    }
    let env = path.member("env");
    for (n, variable) in container.env.iter().flatten().enumerate() {
        if names::env_name(&variable.name).is_some() {
            errors.push(
                env.item(n).member("name"),
                format!("must be a valid variable name (is {:?})", variable.name),
                "use printable ASCII characters other than '='",
            );
        }
    }
    check_resources(path, container, errors);
    let mut port_names = BTreeSet::new();
    let ports = path.member("ports");
    for (n, port) in container.ports.iter().flatten().enumerate() {
        let at = ports.item(n);
        if !(1..=65_535).contains(&port.container_port) {
            errors.push(
                at.member("containerPort"),
                format!("must be from 1 to 65535 (is {})", port.container_port),
                "",
            );
        }
        let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) else {
            continue;
        };
        if names::port_name(name).is_some() {
            errors.push(
                at.member("name"),
                format!("must be a valid port name (is {name:?})"),
                format!(
                    "use at most {MAX_PORT_NAME_CHARS} lower-case letters, digits and single '-', with at least one letter"
                ),
            );
        }
        if !port_names.insert(name) {
            errors.push(
                at.member("name"),
                format!("duplicate port name {name:?}"),
                "give each port its own name",
            );
        }
    }
}

/// Returns the remedy for text that is not a quantity. Units of other tools, such as GB and gb, become those of
/// Kubernetes.
fn quantity_remedy(text: &str) -> String {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[number.len()..].to_ascii_uppercase();
    let unit = unit
        .strip_suffix("IB")
        .or(unit.strip_suffix('B'))
        .unwrap_or(&unit);
    let pair = match unit {
        _ if number.is_empty() => "",
        "K" => "k or {}Ki",
        "M" => "M or {}Mi",
        "G" => "G or {}Gi",
        "T" => "T or {}Ti",
        _ => "",
    };
    match pair {
        "" => "use a number with an optional unit, such as 500m, 2 or 1.5Gi".to_owned(),
        pair => format!("did you mean {number}{}?", pair.replace("{}", number)),
    }
}

fn check_resources(path: FieldPath<'_>, container: &Container, errors: &mut FieldErrors) {
    let Some(resources) = &container.resources else {
        return;
    };
    for (list, quantities) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        let resources = path.member("resources");
        let list = resources.member(list);
        for (resource, quantity) in quantities.iter().flatten() {
            let at = list.key(resource);
            if !is_quantity(&quantity.0) {
                errors.push(
                    at,
                    format!("must be a quantity (is {:?})", quantity.0),
                    quantity_remedy(&quantity.0),
                );
            } else if quantity.0.starts_with('-') {
                errors.too_small(at, &quantity.0, 0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quantity_remedy;

    #[test]
    fn units_of_other_tools_become_those_of_kubernetes() {
        for (text, remedy) in [
            ("4GB", "did you mean 4G or 4Gi?"),
            ("512mb", "did you mean 512M or 512Mi?"),
            ("1.5gib", "did you mean 1.5G or 1.5Gi?"),
            ("64KB", "did you mean 64k or 64Ki?"),
            (
                "lots",
                "use a number with an optional unit, such as 500m, 2 or 1.5Gi",
            ),
            (
                "GB",
                "use a number with an optional unit, such as 500m, 2 or 1.5Gi",
            ),
        ] {
            assert_eq!(quantity_remedy(text), remedy, "{text}");
        }
    }
}
