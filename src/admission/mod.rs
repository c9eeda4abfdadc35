//! What an API server is told, so that it refuses what [validation](crate::validate()) refuses, in the
//! same words.
//!
//! [`definition`] adds to the shape of a kind ([`TrainingJob::definition`]) rules in CEL, made of what the
//! kind declares: its roles and their bounds, its container, and the words and numbers that its fields
//! may have. They hold in every version that is served. A kind's own checks are a hook,
//! [`TrainingJob::rules`].
//!
//! Three things bound what can be said. An API server estimates the cost of every rule before it takes
//! it, so nothing is compared with everything; a job may not be refused that the validation would take;
//! and objects that were there before the rules can still be written where they do not change, by
//! validation ratcheting (Kubernetes 1.30 and later) and, for the rules on the whole object, which
//! changes with each write of its status, by a look at the old one.

mod bounds;
mod manifest;
mod roles;
mod template;

pub use manifest::manifest;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrBool,
};

use crate::job::{Framework, Rule, TrainingJob};

/// The most roles that a job can name. Less than this and a job with unknown roles would be told of their
/// number, and not of their names.
const MAX_ROLES: i64 = 16;

/// The custom resource definition to install: the shape of the kind, with rules.
pub fn definition<J: TrainingJob>() -> CustomResourceDefinition {
    let mut definition = J::definition();
    for version in &mut definition.spec.versions {
        let schema = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut());
        if let Some(root) = schema {
            rule_version::<J>(root);
        }
    }
    definition
}

fn rule_version<J: TrainingJob>(root: &mut JSONSchemaProps) {
    let framework = J::FRAMEWORK;
    roles::on_object(root, &framework);
    let Some(spec) = root.properties.as_mut().and_then(|p| p.get_mut("spec")) else {
        return;
    };
    bounds::to_rules(spec, "spec");
    let specs = framework.specs_field;
    let no_replica =
        format!("!has(self.{specs}) || !self.{specs}.exists(k, self.{specs}[k].?replicas.orValue(1) != 0)");
    for rule in J::rules() {
        // As the hook of the validation, which is asked only about roles that are in order.
        add(spec, rule.unless(&no_replica));
    }
    let Some(specs) = spec.properties.as_mut().and_then(|p| p.get_mut(specs)) else {
        return;
    };
    specs.max_properties = Some(MAX_ROLES);
    roles::on_specs(specs, &J::kind(&()), &framework);
    let Some(JSONSchemaPropsOrBool::Schema(role)) = &mut specs.additional_properties else {
        return;
    };
    roles::on_role(role, &framework);
    if let Some(template) = role.properties.as_mut().and_then(|p| p.get_mut("template")) {
        template::tighten(template, &framework);
    }
}

fn add(schema: &mut JSONSchemaProps, rule: Rule) {
    schema
        .x_kubernetes_validations
        .get_or_insert_default()
        .push(rule.into());
}

fn role_names(framework: &Framework) -> Vec<&'static str> {
    framework.roles.iter().map(|role| role.name).collect()
}
