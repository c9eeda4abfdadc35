//! Whether what a kind declares fits together and fits its resource. Authors learn of it when the definition is made:
//! from a `crd` command, from snapshot tests, and when an operator starts.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_syntax::names;
use serde_json::json;

use crate::api::labels::OPERATOR_NAME;
use crate::job::TrainingJob;

/// What is wrong with what a kind declares.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {problem}; {remedy}")]
pub struct DefinitionError {
    /// The kind.
    pub kind: String,
    /// What does not fit.
    pub problem: String,
    /// What to change in its code.
    pub remedy: String,
}

/// The shape in which a kind has its replica specs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A map by role.
    Map,
    /// A list of entries that name their role.
    List,
}

fn error<J: TrainingJob, T>(problem: String, remedy: &str) -> Result<T, DefinitionError> {
    Err(DefinitionError {
        kind: J::kind(&()).into_owned(),
        problem,
        remedy: remedy.to_owned(),
    })
}

/// Checks [`TrainingJob::FRAMEWORK`] by itself.
pub(crate) fn framework<J: TrainingJob>() -> Result<(), DefinitionError> {
    let framework = J::FRAMEWORK;
    if names::label_value(framework.controller).is_some() || framework.controller.is_empty() {
        return error::<J, _>(
            format!(
                "the controller {:?} is no value of the label {OPERATOR_NAME}",
                framework.controller
            ),
            "give Framework::new a controller such as \"myjob-controller\"",
        );
    }
    if !framework.container.is_empty() && names::label_1123(framework.container).is_some() {
        return error::<J, _>(
            format!("{:?} is no name of a container", framework.container),
            "give Framework::container a name of lower-case letters, digits and '-'",
        );
    }
    let is_port = names::port_name(framework.port_name).is_none() && (1..=65_535).contains(&framework.port);
    if !framework.port_name.is_empty() && !is_port {
        return error::<J, _>(
            format!("{:?} {} is no port", framework.port_name, framework.port),
            "give Framework::port a name of at most 15 lower-case letters, digits and '-', and a number from 1 to 65535",
        );
    }
    if framework.roles.is_empty() {
        return error::<J, _>(
            "it has no roles".to_owned(),
            "give Framework::roles the field of the replica specs and the roles in it",
        );
    }
    if let Some(scaled) = framework.scaled_role
        && (framework.role_key.is_some() || !framework.roles.iter().any(|role| role.name == scaled))
    {
        return error::<J, _>(
            format!("{scaled:?} is no role in a map of replica specs"),
            "give Framework::scales the name of a role, and Framework::roles a map",
        );
    }
    for (n, role) in framework.roles.iter().enumerate() {
        if names::label_1035(&role.slug()).is_some() {
            return error::<J, _>(
                format!("the role {:?} cannot be part of a service's name", role.name),
                "use letters and digits, beginning with a letter",
            );
        }
        if framework.roles[..n]
            .iter()
            .any(|other| other.slug() == role.slug())
        {
            return error::<J, _>(
                format!("the role {} is there twice", role.name),
                "names of roles are compared without regard to case; remove one",
            );
        }
        if role.min > role.max {
            return error::<J, _>(
                format!(
                    "the role {} must have at least {} and at most {} replicas",
                    role.name, role.min, role.max
                ),
                "make its lower bound the smaller one",
            );
        }
    }
    Ok(())
}

/// The shape of the replica specs in a version's schema.
pub(super) fn shape<J: TrainingJob>(root: &JSONSchemaProps) -> Result<Shape, DefinitionError> {
    let field = J::FRAMEWORK.roles_field;
    let spec = root.properties.as_ref().and_then(|p| p.get("spec"));
    let Some(fields) = spec.and_then(|spec| spec.properties.as_ref()) else {
        return error::<J, _>(
            "its schema has no spec with fields".to_owned(),
            "derive the resource from a struct with #[kube(...)] and JsonSchema",
        );
    };
    let Some(specs) = fields.get(field) else {
        let known: Vec<_> = fields.keys().map(String::as_str).collect();
        return error::<J, _>(
            format!("its spec has no field {field:?}; it has {}", known.join(", ")),
            "give Framework::roles the field's name as it is in YAML",
        );
    };
    let (shape, entry) = match (&specs.additional_properties, &specs.items) {
        (Some(JSONSchemaPropsOrBool::Schema(role)), _) => (Shape::Map, role),
        (_, Some(JSONSchemaPropsOrArray::Schema(role))) => (Shape::List, role),
        _ => {
            return error::<J, _>(
                format!("spec.{field} is neither a map nor a list"),
                "make it api::ReplicaSpecs, or a list of entries that have `replicas` and `template`",
            );
        }
    };
    if (shape == Shape::List) != J::FRAMEWORK.role_key.is_some() {
        return error::<J, _>(
            format!(
                "spec.{field} is a {}",
                if shape == Shape::List { "list" } else { "map" }
            ),
            "declare a map by Framework::roles, a list by Framework::roles_in_list",
        );
    }
    if entry
        .properties
        .as_ref()
        .is_none_or(|p| !p.contains_key("template"))
    {
        return error::<J, _>(
            format!("the entries of spec.{field} have no field \"template\""),
            "make them api::ReplicaSpec, or give them its fields",
        );
    }
    Ok(shape)
}

/// Checks that an unset number of replicas means what the schema's default for it is. `entry` is the schema of the entries of
/// a map of replica specs.
pub(super) fn default_replicas<J: TrainingJob>(entry: &JSONSchemaProps) -> Result<(), DefinitionError> {
    let field = J::FRAMEWORK.roles_field;
    let replicas = entry.properties.as_ref().and_then(|p| p.get("replicas"));
    let Some(default) = replicas.and_then(|replicas| replicas.default.as_ref()?.0.as_i64()) else {
        return Ok(());
    };
    for role in J::FRAMEWORK.roles {
        let job = json!({
            "apiVersion": J::api_version(&()), "kind": J::kind(&()), "metadata": {"name": "job"},
            "spec": {field: {role.name: {"template": {}}}},
        });
        // A spec that needs more fields than these is not looked at.
        let Ok(job) = J::deserialize(&job) else { continue };
        let specs = job.replica_specs();
        let meant = specs
            .iter()
            .filter_map(|(_, spec)| Some(i64::from(spec?.replicas.unwrap_or(1))));
        if let Some(meant) = meant.into_iter().find(|meant| *meant != default) {
            return error::<J, _>(
                format!(
                    "a {} without a number of replicas has {meant}, and its definition fills in {default}",
                    role.name
                ),
                "take the default out by api::schema::without_default_replicas",
            );
        }
    }
    Ok(())
}
