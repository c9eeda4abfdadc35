//! Checks that the declarations of a kind fit together and fit its resource. Authors see the errors when the definition
//! is made: from a `crd` command, from snapshot tests, and when an operator starts.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_schema::names;
use serde_json::json;

use crate::api::labels::OPERATOR_NAME;
use crate::job::{Framework, Kind, RoleDefinition, RoleSource};

/// An error in the declarations of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {problem}; {remedy}")]
pub struct DefinitionError {
    /// The kind, such as `MyJob`.
    pub kind: String,
    /// The declaration that does not fit, and why.
    pub problem: String,
    /// The change in the code of the kind that mends it.
    pub remedy: String,
}

/// A contradiction in the declarations of a kind.
pub(super) struct Mistake {
    problem: String,
    remedy: &'static str,
}

impl Mistake {
    pub(super) fn of(self, kind: &Kind) -> DefinitionError {
        DefinitionError {
            kind: kind.name().to_owned(),
            problem: self.problem,
            remedy: self.remedy.to_owned(),
        }
    }
}

/// The shape of a kind's replica specs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A map by role.
    Map,
    /// A list of entries that name their role.
    List,
}

fn error<T>(problem: String, remedy: &'static str) -> Result<T, Mistake> {
    Err(Mistake { problem, remedy })
}

/// Checks the framework of a kind by itself. This takes much less time than the whole [`definition`](super::definition).
///
/// # Errors
/// The declarations contradict each other, or the API server would reject them.
pub fn check_framework(kind: &Kind) -> Result<(), DefinitionError> {
    framework(&kind.framework).map_err(|mistake| mistake.of(kind))
}

fn framework(framework: &Framework) -> Result<(), Mistake> {
    if names::label_value(framework.controller).is_some() || framework.controller.is_empty() {
        return error(
            format!(
                "controller {:?} must be a valid value of label {OPERATOR_NAME}",
                framework.controller
            ),
            "pass a controller such as \"myjob-controller\" to Framework::new",
        );
    }
    let prefix = framework.key_prefix;
    let is_reserved = ["kubernetes.io", "k8s.io"].iter().any(|reserved| {
        prefix
            .strip_suffix(reserved)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if names::subdomain(prefix).is_some() || is_reserved {
        return error(
            format!("key prefix {prefix:?} must be a DNS name outside of kubernetes.io and k8s.io"),
            "pass a domain such as \"farm.example.com\" to Framework::key_prefix",
        );
    }
    if !framework.main_container.is_empty() && names::label_1123(framework.main_container).is_some() {
        return error(
            format!(
                "container {:?} must be a valid container name",
                framework.main_container
            ),
            "pass a name of lower-case letters, digits and '-' to Framework::main_container",
        );
    }
    if !framework.port_name.is_empty() && !is_port(framework.port_name, framework.port) {
        return error(
            format!(
                "port {:?} {} must have a valid name and number",
                framework.port_name, framework.port
            ),
            "pass a name of at most 15 lower-case letters, digits and '-', and a number from 1 to 65535 to Framework::port",
        );
    }
    for role in framework.roles {
        check_container_of(role)?;
    }
    if framework.roles.is_empty() {
        return error(
            "must have at least one role".to_owned(),
            "pass the field of the replica specs and its roles to Framework::roles",
        );
    }
    for object in framework.objects {
        let Some(mount) = object.mount else { continue };
        let is_mountable = matches!(
            (object.kind.group, object.kind.kind),
            ("", "ConfigMap" | "Secret" | "PersistentVolumeClaim")
        );
        if let Some(class) = mount.roles.iter().find(|class| !is_role(framework, class)) {
            return error(
                format!(
                    "{} {:?} is mounted in {class}, which is not a role",
                    object.kind.kind, mount.name
                ),
                "pass names of roles to ObjectDefinition::mounted_in",
            );
        }
        if !is_mountable || names::label_1123(mount.name).is_some() || !mount.path.starts_with('/') {
            return error(
                format!(
                    "{} {:?} cannot be mounted at {:?}",
                    object.kind.kind, mount.name, mount.path
                ),
                "mount a ConfigMap, a Secret or a PersistentVolumeClaim, with a name of lower-case letters, digits and '-', at an absolute path",
            );
        }
    }
    if let Some(scaled) = framework.scaled_role
        && (framework.role_key.is_some() || !framework.roles.iter().any(|role| role.name == scaled))
    {
        return error(
            format!("scaled role {scaled:?} must be a role in a map of replica specs"),
            "pass the name of a role to Framework::scales, and declare a map with Framework::roles",
        );
    }
    let has_entries = framework.entries().next().is_some();
    if has_entries == framework.roles_field.is_empty() {
        return error(
            "must have a field for the roles without a field of their own, and only for these".to_owned(),
            "declare roles with Framework::roles, or all of them with fields of their own with Framework::roles_in_fields",
        );
    }
    for (n, role) in framework.roles.iter().enumerate() {
        if !role.source.is_open() && names::label_1035(&role.slug()).is_some() {
            return error(
                format!("role {:?} must be usable in the name of a service", role.name),
                "use letters and digits, starting with a letter",
            );
        }
        if framework.roles[..n]
            .iter()
            .any(|other| other.slug() == role.slug())
        {
            return error(
                format!("duplicate role {} (case is ignored)", role.name),
                "remove one of them",
            );
        }
        let field = role.source.field();
        let is_same = |other: &RoleDefinition| other.source.field() == field;
        if let Some(field) = field
            && (field == framework.roles_field || framework.roles[..n].iter().any(is_same))
        {
            return error(
                format!("field {field:?} of role {} must be its own", role.name),
                "give each role a field of its own, or declare one class of roles",
            );
        }
        if let Some(first) = role.starts_after.iter().find(|first| !is_role(framework, first)) {
            return error(
                format!("role {} starts after {first}, which is not a role", role.name),
                "pass names of roles to RoleDefinition::starts_after",
            );
        }
        if waits_for_itself(framework, role) {
            return error(
                format!("role {} starts after itself", role.name),
                "break the circle of RoleDefinition::starts_after",
            );
        }
        if role.in_order && !matches!(role.source, RoleSource::List { .. }) {
            return error(
                format!("role {} is in order, but its roles are no list", role.name),
                "declare the roles with RoleDefinition::in_list, or use RoleDefinition::starts_after",
            );
        }
        if role.min > role.max {
            return error(
                format!(
                    "role {} has a minimum of {} and a maximum of {} replicas",
                    role.name, role.min, role.max
                ),
                "make the minimum at most the maximum",
            );
        }
    }
    Ok(())
}

/// Checks the container and the ports that a role has of its own.
fn check_container_of(role: &RoleDefinition) -> Result<(), Mistake> {
    if let Some(name) = role.container.filter(|name| names::label_1123(name).is_some()) {
        return error(
            format!(
                "container {name:?} of role {} must be a valid container name",
                role.name
            ),
            "pass a name of lower-case letters, digits and '-' to RoleDefinition::container; for the first container, whatever \
             its name, call Framework::first_container, and not RoleDefinition::container",
        );
    }
    if let Some(name) = role.service
        && (role.max > 1
            || role.source.is_open()
            || !role.has_service
            || names::label_1035(name).is_some()
            || name
                .rsplit('-')
                .next()
                .is_some_and(|end| end.parse::<u32>().is_ok()))
    {
        return error(
            format!(
                "service {name:?} of role {} must be a valid name of its only replica's service",
                role.name
            ),
            "pass a name of lower-case letters, digits and '-' that does not end with a number to RoleDefinition::service, for a role of at most one replica",
        );
    }
    let mut ports = role.ports.into_iter().flatten();
    if let Some((name, number)) = ports.find(|(name, number)| !is_port(name, *number)) {
        return error(
            format!(
                "port {name:?} {number} of role {} must have a valid name and number",
                role.name
            ),
            "pass names of at most 15 lower-case letters, digits and '-', and numbers from 1 to 65535 to RoleDefinition::ports",
        );
    }
    Ok(())
}

fn is_port(name: &str, number: i32) -> bool {
    names::port_name(name).is_none() && (1..=65_535).contains(&number)
}

fn is_role(framework: &Framework, name: &str) -> bool {
    framework.roles.iter().any(|role| role.name == name)
}

/// Returns true if a role starts after itself, directly or through other roles.
fn waits_for_itself(framework: &Framework, role: &RoleDefinition) -> bool {
    let mut reached: Vec<&str> = role.starts_after.to_vec();
    let mut next = 0;
    while let Some(name) = reached.get(next).copied() {
        let found = framework.roles.iter().filter(|role| role.name == name);
        for first in found.flat_map(|role| role.starts_after) {
            if !reached.contains(first) {
                reached.push(first);
            }
        }
        next += 1;
    }
    reached.contains(&role.name)
}

/// Returns the shape of the replica specs in a version's schema.
pub(super) fn shape(root: &JSONSchemaProps, framework: &Framework) -> Result<Shape, Mistake> {
    let field = framework.roles_field;
    let spec = root.properties.as_ref().and_then(|p| p.get("spec"));
    let Some(fields) = spec.and_then(|spec| spec.properties.as_ref()) else {
        return error(
            "the schema must have a spec with fields".to_owned(),
            "derive the resource from a struct with #[kube(...)] and JsonSchema",
        );
    };
    let Some(specs) = fields.get(field) else {
        let known: Vec<_> = fields.keys().map(String::as_str).collect();
        return error(
            format!("spec must have the field {field:?} (has {})", known.join(", ")),
            "pass the field's name as in YAML to Framework::roles",
        );
    };
    let (shape, entry) = match (&specs.additional_properties, &specs.items) {
        (Some(JSONSchemaPropsOrBool::Schema(role)), _) => (Shape::Map, role),
        (_, Some(JSONSchemaPropsOrArray::Schema(role))) => (Shape::List, role),
        _ => {
            return error(
                format!("spec.{field} must be a map or a list"),
                "make it api::ReplicaSpecs, or a list of entries that have `replicas` and `template`",
            );
        }
    };
    if (shape == Shape::List) != framework.role_key.is_some() {
        return error(
            format!(
                "spec.{field} is a {}",
                if shape == Shape::List { "list" } else { "map" }
            ),
            "declare a map with Framework::roles and a list with Framework::roles_in_list",
        );
    }
    replica_spec(field, entry)?;
    if let Some(key) = framework.role_key {
        role_key(field, key, entry)?;
    }
    Ok(shape)
}

/// Returns the schema of the entries of the list or map `spec.<field>`.
pub(super) fn entries_of<'s>(
    spec: &'s mut JSONSchemaProps,
    field: &str,
) -> Result<&'s mut JSONSchemaProps, Mistake> {
    let field_schema = spec.properties.as_mut().and_then(|fields| fields.get_mut(field));
    let entries =
        field_schema.and_then(
            |schema| match (&mut schema.items, &mut schema.additional_properties) {
                (Some(JSONSchemaPropsOrArray::Schema(item)), _) => Some(&mut **item),
                (_, Some(JSONSchemaPropsOrBool::Schema(value))) => Some(&mut **value),
                _ => None,
            },
        );
    match entries {
        Some(entries) => Ok(entries),
        None => error(
            format!("spec must have a list or map {field:?}, whose entries have a rule"),
            "pass the field's name as in YAML to Rule::each",
        ),
    }
}

/// The field of the number of replicas in a [`ReplicaSpec`](crate::api::ReplicaSpec).
pub(super) const USUAL_FIELD: &str = "replicas";

/// Checks that a role's own field is in the spec and has the declared shape.
pub(super) fn own_field(spec: &JSONSchemaProps, definition: &RoleDefinition) -> Result<(), Mistake> {
    let Some(field) = definition.source.field() else {
        return Ok(());
    };
    let Some(specs) = spec.properties.as_ref().and_then(|fields| fields.get(field)) else {
        return error(
            format!("spec must have the field {field:?} of role {}", definition.name),
            "pass the field's name as in YAML to RoleDefinition::in_field, in_map or in_list",
        );
    };
    let (entry, shape) = match (definition.source, &specs.additional_properties, &specs.items) {
        (RoleSource::Map(_), Some(JSONSchemaPropsOrBool::Schema(entry)), _) => (Some(&**entry), "map"),
        (RoleSource::Map(_), ..) => (None, "map"),
        (RoleSource::List { .. }, _, Some(JSONSchemaPropsOrArray::Schema(entry))) => (Some(&**entry), "list"),
        (RoleSource::List { .. }, ..) => (None, "list"),
        _ => (Some(specs), "replica spec"),
    };
    let Some(entry) = entry else {
        return error(
            format!("spec.{field} must be a {shape}"),
            "use RoleDefinition::in_field for a replica spec, in_map for a map, and in_list for a list",
        );
    };
    match definition.template_from {
        None => replica_spec(field, entry)?,
        Some(shared) => shared_template(spec, definition, shared)?,
    }
    let replicas = definition.replicas_field;
    let is_own = definition.template_from.is_some() || replicas != USUAL_FIELD;
    let has_it = entry
        .properties
        .as_ref()
        .is_some_and(|p| p.contains_key(replicas));
    if is_own && !has_it {
        return error(
            format!("the entries of spec.{field} must have the field {replicas:?}, the number of replicas"),
            "pass the field's name as in YAML to RoleDefinition::replicas_field",
        );
    }
    if let RoleSource::List { key, .. } = definition.source {
        role_key(field, key, entry)?;
    }
    Ok(())
}

/// Checks that the entries of a list have the field that names their role.
fn role_key(field: &str, key: &str, entry: &JSONSchemaProps) -> Result<(), Mistake> {
    match entry.properties.as_ref().is_some_and(|p| p.contains_key(key)) {
        true => Ok(()),
        false => error(
            format!("the entries of spec.{field} must have the field {key:?}, which names their role"),
            "pass the field's name as in YAML",
        ),
    }
}

/// Checks the pod template that the roles of a class share.
fn shared_template(spec: &JSONSchemaProps, role: &RoleDefinition, field: &str) -> Result<(), Mistake> {
    let template = spec.properties.as_ref().and_then(|fields| fields.get(field));
    let member = |schema: &'_ JSONSchemaProps, name: &str| schema.properties.as_ref()?.get(name).cloned();
    let containers = template.and_then(|template| member(&member(template, "spec")?, "containers"));
    // Without a bound the rules on containers would cost an API server too much.
    let is_bounded = containers.is_some_and(|containers| containers.max_items.is_some());
    match role.source.is_open() && is_bounded {
        true => Ok(()),
        false => error(
            format!("spec.{field} must be the pod template of the roles {}", role.name),
            "pass the name of a field of type PodTemplateSpec with #[schemars(schema_with = \"pod_template\")], of api::schema, to \
             RoleDefinition::template_from, for a list or map of roles",
        ),
    }
}

/// Checks the schema of the replica specs in `spec.<field>`.
fn replica_spec(field: &str, entry: &JSONSchemaProps) -> Result<(), Mistake> {
    match entry
        .properties
        .as_ref()
        .is_some_and(|p| p.contains_key("template"))
    {
        true => Ok(()),
        false => error(
            format!("the replica specs in spec.{field} must have the field \"template\""),
            "make them api::ReplicaSpec, or give them its fields",
        ),
    }
}

/// Checks that an unset number of replicas means the schema's default. `entry` is the schema of the entries of a map of
/// replica specs.
pub(super) fn default_replicas(kind: &Kind, entry: &JSONSchemaProps) -> Result<(), Mistake> {
    let field = kind.framework.roles_field;
    let replicas = entry.properties.as_ref().and_then(|p| p.get("replicas"));
    let Some(default) = replicas.and_then(|replicas| replicas.default.as_ref()?.0.as_i64()) else {
        return Ok(());
    };
    for role in kind.framework.entries() {
        let job = json!({
            "apiVersion": kind.resource.api_version, "kind": kind.name(), "metadata": {"name": "job"},
            "spec": {field: {role.name: {"template": {}}}},
        });
        // A spec that requires more fields than these is not checked.
        let Ok(job) = kind.decode(&job) else { continue };
        let specs = job.replica_specs();
        let meant = specs
            .iter()
            .filter_map(|(_, spec)| Some(i64::from(spec?.replicas.unwrap_or(1))));
        if let Some(meant) = meant.into_iter().find(|meant| *meant != default) {
            return error(
                format!(
                    "a {} without a number of replicas has {meant}, but its definition fills in {default}",
                    role.name
                ),
                "remove the default with api::schema::without_default_replicas",
            );
        }
    }
    Ok(())
}
