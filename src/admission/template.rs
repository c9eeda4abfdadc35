//! Rules and bounds within a pod template, and the removal of fields that no job can use.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::api::schema::MAX_CONTAINERS;
use crate::job::Framework;
use kube_schema::names::{DNS_1123, MAX_PORT_NAME_CHARS};

use super::add;
use crate::job::Rule;
use crate::job::rule as cel;

/// The maximum length of a container's name in the schema. Longer names are rejected with the API server's message.
const MAX_CONTAINER_NAME: i64 = 128;

// Patterns for elements of lists without a bound. The cost of a rule would count for each element, but a pattern has
// no cost. The messages are then the API server's.
const ENV_NAME: &str = "^[ -<>-~]+$";
const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
const PORT_NAME: &str = "^(([a-z0-9]+-)*[a-z0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*)?$";
const QUANTITY: &str = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$";

/// Types of volumes that kubelets no longer mount, the last since 1.31.
const GONE_VOLUMES: [&str; 8] = [
    "cephfs",
    "flocker",
    "glusterfs",
    "photonPersistentDisk",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
];

pub(super) fn tighten(template: &mut JSONSchemaProps, main: &str, framework: &Framework) {
    if template.properties.is_none() {
        *template = skeleton();
    }
    if let Some(labels) = at(template, &["metadata", "labels"])
        && let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut labels.additional_properties
    {
        value.pattern = Some(LABEL_VALUE.to_owned());
    }
    let Some(spec) = at(template, &["spec"]) else {
        return;
    };
    // A role's rule reports missing containers with a better message.
    spec.required = None;
    if let Some(ephemeral) = at(spec, &["ephemeralContainers"]) {
        // No pod can be created with them, so their schema of 10 KB is not needed.
        *ephemeral = list_of(open(None));
    }
    // Among init containers only sidecars have these fields, and their schema of 5 KB would be there twice.
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        let container = at(spec, &["initContainers"]).and_then(items);
        if let Some(field) = container.and_then(|container| at(container, &[field])) {
            *field = open(None);
        }
    }
    if let Some(volume) = at(spec, &["volumes"]).and_then(items) {
        for (name, kind) in volume.properties.iter_mut().flatten() {
            if GONE_VOLUMES.contains(&name.as_str()) {
                *kind = open(None);
            }
        }
    }
    if let Some(containers) = at(spec, &["containers"]) {
        containers.min_items = None;
        if !main.is_empty() {
            let named = format!("c.name == {}", cel::literal(main));
            let rule = Rule::with_message_of(format!("self.size() == 0 || self.exists(c, {named})"), |e| {
                e.not_among_containers("", main);
            });
            add(containers, rule);
        }
        let once = "self.exists_one(d, d.name == c.name)";
        let rule = Rule::with_message_of(format!("self.all(c, {once})"), |e| e.container_twice("", "%s"));
        add(containers, rule.with(&format!("self.filter(c, !{once})[0].name")));
    }
    for list in ["containers", "initContainers"] {
        let Some(container) = at(spec, &[list]).and_then(items) else {
            continue;
        };
        tighten_container(container, framework);
        let Some(name) = at(container, &["name"]) else {
            continue;
        };
        if list == "containers" {
            name.max_length = Some(MAX_CONTAINER_NAME);
            let rule = Rule::with_message_of(format!("self.matches({})", cel::literal(DNS_1123)), |e| {
                e.bad_container_name("", "%s");
            });
            add(name, rule.with("self"));
        } else {
            name.pattern = Some(DNS_1123.to_owned());
        }
    }
}

fn tighten_container(container: &mut JSONSchemaProps, framework: &Framework) {
    if !framework.fills_in_images {
        let rule = Rule::with_message_of(r#"self.?image.orValue("") != """#, |e| e.no_image(""));
        add(container, rule.at("image"));
    }
    if let Some(name) = at(container, &["env"])
        .and_then(items)
        .and_then(|i| at(i, &["name"]))
    {
        name.pattern = Some(ENV_NAME.to_owned());
    }
    if let Some(port) = at(container, &["ports"]).and_then(items) {
        if let Some(number) = at(port, &["containerPort"]) {
            (number.minimum, number.maximum) = (Some(1.0), Some(65_535.0));
        }
        if let Some(name) = at(port, &["name"]) {
            name.pattern = Some(PORT_NAME.to_owned());
            name.max_length = Some(MAX_PORT_NAME_CHARS as i64);
        }
        if let Some(protocol) = at(port, &["protocol"]) {
            // The default is stored, as by the definition of the Go operator.
            protocol.default = Some(JSON("TCP".into()));
        }
    }
    for list in ["limits", "requests"] {
        if let Some(quantities) = at(container, &["resources", list])
            && let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut quantities.additional_properties
        {
            value.pattern = Some(QUANTITY.to_owned());
            value.minimum = Some(0.0);
        }
    }
}

/// Returns a schema of the template's fields that the rules read. All other fields are accepted.
fn skeleton() -> JSONSchemaProps {
    let text = || JSONSchemaProps {
        type_: Some("string".to_owned()),
        ..JSONSchemaProps::default()
    };
    let port = open(Some([("protocol".to_owned(), text())].into()));
    let fields = [
        ("name".to_owned(), text()),
        ("image".to_owned(), text()),
        ("ports".to_owned(), list_of(port)),
    ];
    let container = JSONSchemaProps {
        required: Some(vec!["name".to_owned()]),
        ..open(Some(fields.into()))
    };
    let containers = JSONSchemaProps {
        max_items: i64::try_from(MAX_CONTAINERS).ok(),
        ..list_of(container.clone())
    };
    let spec = open(Some(
        [
            ("containers".to_owned(), containers),
            ("initContainers".to_owned(), list_of(container)),
        ]
        .into(),
    ));
    open(Some([("spec".to_owned(), spec)].into()))
}

type Properties = std::collections::BTreeMap<String, JSONSchemaProps>;

/// Returns the schema of an object that may have other fields.
fn open(properties: Option<Properties>) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some("object".to_owned()),
        x_kubernetes_preserve_unknown_fields: Some(true),
        properties,
        ..JSONSchemaProps::default()
    }
}

fn list_of(item: JSONSchemaProps) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some("array".to_owned()),
        items: Some(JSONSchemaPropsOrArray::Schema(Box::new(item))),
        ..JSONSchemaProps::default()
    }
}

/// Returns the property at `path`.
fn at<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    path.iter()
        .try_fold(schema, |schema, name| schema.properties.as_mut()?.get_mut(*name))
}

/// Returns the schema of a list's items.
pub(super) fn items(list: &mut JSONSchemaProps) -> Option<&mut JSONSchemaProps> {
    match &mut list.items {
        Some(JSONSchemaPropsOrArray::Schema(schema)) => Some(schema),
        _ => None,
    }
}
