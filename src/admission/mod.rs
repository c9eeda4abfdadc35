//! Rules with which the API server rejects what [validation](crate::validate()) rejects, with the same messages.
//!
//! [`definition`] adds rules in CEL to the definition of a kind ([`TrainingJob::definition`]). They follow from the
//! declarations of the kind: its roles and their bounds, its container, and the values of its fields. They apply to
//! every served version. [`TrainingJob::checks`] adds those of the kind.
//!
//! The rules are limited in three ways. An API server estimates the cost of every rule before it accepts it, so rules
//! do not compare all values with each other. A rule must not reject a job that validation accepts. And objects that
//! are older than the rules can still be written in their unchanged parts: by validation ratcheting (Kubernetes 1.30
//! and later), and in rules on the whole object, which changes with each write of its status, by a comparison with the
//! old object.

mod bounds;
mod check;
mod manifest;
mod policies;
mod role_fields;
mod roles;
mod template;

pub use check::{DefinitionError, check_framework};
pub use manifest::{manifest, size_warning};

use std::collections::BTreeMap;

use check::{Mistake, Shape};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceSubresourceScale, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};

use kube_schema::names::MAX_LABEL_CHARS;

use crate::api::RunPolicy;
use crate::api::schema::schema;
use crate::job::rule::{RulePlace, list};
use crate::job::{Framework, Kind, RoleSource, Rule, TrainingJob};

/// The maximum number of roles of a job, if the author of the kind sets no bound. With a lower limit, the error of a job
/// with unknown roles would be their number instead of their names.
const MAX_ROLES: i64 = 16;
/// The maximum number of characters of a role's name in a list. Known names are shorter. Without a bound the API server
/// assumes a very long name, and rejects the rules.
const MAX_ROLE_NAME: i64 = MAX_LABEL_CHARS as i64;

/// Returns the custom resource definition to install: the definition of the kind with rules, in the category
/// of its framework.
///
/// # Errors
/// If the declarations of the kind do not fit together, or do not fit its resource.
pub fn definition<J: TrainingJob>() -> Result<CustomResourceDefinition, DefinitionError> {
    definition_of(&Kind::of::<J>())
}

/// Returns the same for a kind as a value.
///
/// # Errors
/// If the declarations of the kind do not fit together, or do not fit its resource.
pub fn definition_of(kind: &Kind) -> Result<CustomResourceDefinition, DefinitionError> {
    let mut definition = kind.definition_without_rules();
    check_framework(kind)?;
    let framework = &kind.framework;
    let categories = definition.spec.names.categories.get_or_insert_default();
    let category = framework.category;
    if !categories.iter().any(|other| other == category) {
        categories.push(category.to_owned());
    }
    for version in &mut definition.spec.versions {
        if let Some(role) = framework.scaled_role {
            version.subresources.get_or_insert_default().scale = Some(scale(framework.roles_field, role));
        }
        if let Some(root) = schema(version) {
            add_rules(root, kind).map_err(|mistake| mistake.of(kind))?;
            drop_defaults(root);
            let mut variants = framework.variants.iter();
            if !framework.waits_for_readiness() && !variants.any(Framework::waits_for_readiness) {
                drop_readiness(root);
            }
        }
    }
    Ok(definition)
}

/// Returns the scale subresource, with which clients read and change the number of a role's replicas.
fn scale(field: &str, role: &str) -> CustomResourceSubresourceScale {
    let status = format!(".status.replicaStatuses.{role}");
    CustomResourceSubresourceScale {
        spec_replicas_path: format!(".spec.{field}.{role}.replicas"),
        status_replicas_path: format!("{status}.active"),
        label_selector_path: Some(format!("{status}.selector")),
    }
}

fn add_rules(root: &mut JSONSchemaProps, kind: &Kind) -> Result<(), Mistake> {
    let framework = &kind.framework;
    let shape = match framework.roles_field {
        "" => None,
        _ => Some(check::shape(root, framework)?),
    };
    roles::on_object(root, framework);
    let named_by_role =
        !framework.names_replicas && framework.roles.iter().all(|role| role.service.is_none());
    if shape == Some(Shape::Map) && named_by_role && framework.has_services() {
        roles::on_name_lengths(root, framework);
    }
    if !framework.names_replicas {
        role_fields::on_name_lengths(root, framework);
    }
    let rules = kind.checks().iter().filter_map(|check| check.rule(framework));
    for rule in rules.filter(|rule| rule.place == RulePlace::Object) {
        add(root, rule);
    }
    let Some(spec) = property(root, "spec") else {
        return Ok(());
    };
    for definition in framework.roles {
        check::own_field(spec, definition)?;
        role_fields::bound_replicas(spec, definition)?;
    }
    bounds::to_rules(spec, "spec");
    let field = framework.roles_field;
    let no_replica = match framework
        .roles
        .iter()
        .all(|role| role.source == RoleSource::Entry)
    {
        true => {
            let replicas = framework.replicas_of(&format!("self.{field}"), "k");
            format!("!has(self.{field}) || !self.{field}.exists(k, {replicas} != 0)")
        }
        false => {
            let has_replicas = |spec: &str, field: &str| format!("{spec}.?{field}.orValue(1) != 0");
            let any = framework.any_spec(|_| true, has_replicas);
            format!("!({any})")
        }
    };
    for rule in kind.checks().iter().filter_map(|check| check.rule(framework)) {
        match rule.place {
            // As in validation, which calls the hooks only for jobs with valid roles.
            RulePlace::Spec => add(spec, rule.unless(&no_replica)),
            RulePlace::Entries(field) => add(check::entries_of(spec, field)?, rule),
            RulePlace::Object => {}
        }
    }
    keep_layout(spec);
    keep_manager(spec);
    policies::on_spec(spec, kind.name(), framework);
    for definition in framework.roles {
        role_fields::on_spec(spec, definition, framework);
    }
    role_fields::on_names_of_two_fields(spec, framework);
    let (Some(shape), Some(specs)) = (shape, property(spec, field)) else {
        return Ok(());
    };
    roles::on_specs(specs, kind.name(), framework);
    let role = match shape {
        Shape::Map => {
            specs.max_properties.get_or_insert(MAX_ROLES);
            match &mut specs.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(role)) => {
                    check::default_replicas(kind, role)?;
                    Some(role)
                }
                _ => None,
            }
        }
        Shape::List => {
            specs.max_items.get_or_insert(MAX_ROLES);
            match &mut specs.items {
                Some(JSONSchemaPropsOrArray::Schema(role)) => Some(role),
                _ => None,
            }
        }
    };
    if let Some(role) = role {
        if let Some(name) = framework.role_key.and_then(|key| property(role, key)) {
            name.max_length.get_or_insert(MAX_ROLE_NAME);
        }
        // All entries have one schema.
        let mut containers = framework.entries().map(|entry| framework.container_name(entry));
        let first = containers.next().unwrap_or_default();
        let container = if containers.all(|other| other == first) {
            first
        } else {
            ""
        };
        roles::on_template(role, "template", None, container, framework);
    }
    Ok(())
}

/// Makes the layout immutable, because after a change running pods and new pods could not find each other by their
/// names.
fn keep_layout(spec: &mut JSONSchemaProps) {
    let layout = property(spec, "runPolicy").and_then(|policy| property(policy, "layout"));
    if layout.is_some() {
        let is_compact = |of: &str| format!("({of}.?runPolicy.?layout.orValue(\"\") == \"Compact\")");
        let stays = format!("{} == {}", is_compact("self"), is_compact("oldSelf"));
        let rule = Rule::new(stays, "field is immutable; create a new job instead");
        add(spec, rule.at("runPolicy.layout"));
    }
}

/// Makes the controller of a job immutable, because after a change two controllers could run the job, or none. The spec
/// may name the controller in two places, which must agree. Names are compared only with known names, because the
/// estimated cost of a comparison with each other is too high.
fn keep_manager(spec: &mut JSONSchemaProps) {
    let nested = property(spec, "runPolicy").and_then(|policy| property(policy, "managedBy"));
    let nested = nested.is_some().then_some("runPolicy.managedBy");
    let top = property(spec, "managedBy").is_some().then_some("managedBy");
    let places: Vec<&str> = nested.into_iter().chain(top).collect();
    let is_in = |of: &str, place: &str, names: &str| {
        format!("{of}.?{}.orValue(\"\") in {names}", place.replace('.', ".?"))
    };
    let own = list(["", RunPolicy::MANAGERS[0]]);
    let is_ours = |of: &str, places: &[&str]| {
        let all: Vec<_> = places.iter().map(|place| is_in(of, place, &own)).collect();
        format!("({})", all.join(" && "))
    };
    let stays = |places: &[&str]| format!("{} == {}", is_ours("self", places), is_ours("oldSelf", places));
    for place in &places {
        let stays = match places.len() {
            1 => stays(&places),
            _ => format!("{} || {}", stays(&[place]), stays(&places)),
        };
        let rule = Rule::new(stays, "field is immutable; create a new job instead");
        add(spec, rule.at(place));
    }
    if let [nested, top] = places[..] {
        let is_unset = |place| is_in("self", place, &list([""]));
        let (one, other) = (is_ours("self", &[nested]), is_ours("self", &[top]));
        let agree = format!("{} || {} || {one} == {other}", is_unset(nested), is_unset(top));
        let rule = Rule::with_message_of(agree, |e| e.differs_from("", &format!("spec.{nested}")));
        add(spec, rule.at(top));
    }
}

/// Removes the defaults of objects and lists that have rules, and returns true if the schema has rules. A default such as
/// that of a replica spec without a template breaks them, and then the API server rejects the definition. Decoding an
/// absent field sets the same default.
fn drop_defaults(schema: &mut JSONSchemaProps) -> bool {
    let mut has_rules = schema.x_kubernetes_validations.is_some();
    for property in schema.properties.iter_mut().flat_map(BTreeMap::values_mut) {
        has_rules |= drop_defaults(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        has_rules |= drop_defaults(item);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        has_rules |= drop_defaults(value);
    }
    let is_composed = |default: &JSON| default.0.is_object() || default.0.is_array();
    if has_rules && schema.default.as_ref().is_some_and(is_composed) {
        schema.default = None;
    }
    has_rules
}

/// Removes the number of ready replicas, which the operator does not count.
fn drop_readiness(root: &mut JSONSchemaProps) {
    let counts = property(root, "status").and_then(|status| property(status, "replicaStatuses"));
    if let Some(JSONSchemaPropsOrBool::Schema(count)) = counts.and_then(|c| c.additional_properties.as_mut())
    {
        let properties = count.properties.iter_mut();
        properties.for_each(|properties| drop(properties.remove("ready")));
    }
}

fn property<'a>(schema: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
    schema.properties.as_mut()?.get_mut(name)
}

fn add(schema: &mut JSONSchemaProps, rule: Rule) {
    schema
        .x_kubernetes_validations
        .get_or_insert_default()
        .push(rule.into());
}
