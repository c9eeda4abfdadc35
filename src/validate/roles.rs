//! Converts replica specs to roles.

use std::borrow::Cow;

use kube_syntax::FieldPath;

use crate::api::labels::{self, QUEUE_NAME};
use crate::api::{MAX_REPLICAS, ReplicaSpec, RestartPolicy};
use crate::job::{FieldErrors, Role, RoleDefinition, TrainingJob};

use super::template;

/// Returns the roles in a job's spec, in the framework's order. Adds their errors.
pub(super) fn check<'a, J: TrainingJob>(job: &'a J, errors: &mut FieldErrors) -> Vec<Role<'a>> {
    let framework = J::FRAMEWORK;
    let spec = FieldPath::At("spec");
    let field = spec.member(framework.roles_field);
    let specs = job.replica_specs();
    let known = framework.role_names();
    for entry in specs.entries() {
        if !known.iter().any(|name| name.eq_ignore_ascii_case(&entry.role)) {
            errors.unknown_role(entry.path(&field), &J::kind(&()), &entry.role, &known);
        }
    }
    let is_queued = labels::queue(job.meta()).is_some();
    let mut roles = Vec::new();
    for definition in framework.roles {
        let mut named = specs
            .entries()
            .iter()
            .filter(|entry| entry.role.eq_ignore_ascii_case(definition.name));
        let Some(first) = named.next() else { continue };
        if is_queued && first.role != definition.name {
            // The pods would run outside of the quota. A rule of the definition cannot check this, because rules see
            // no labels.
            errors.push(
                first.path(&field),
                format!(
                    "must be spelled {} in a queued job, because Kueue would not count its pods otherwise",
                    definition.name
                ),
                format!("rename it, or remove label {QUEUE_NAME}"),
            );
        }
        for other in named {
            errors.role_twice(other.path(&field), &first.role);
        }
        let path = first.path(&field);
        match &first.spec {
            None => errors.push(
                path,
                "must not be null",
                "set replicas and a template, or remove the role",
            ),
            Some(spec) => roles.push(role(job, path, definition, spec.clone(), errors)),
        }
    }
    if specs.entries().is_empty() {
        errors.no_role(field, &known);
    } else if errors.is_empty() {
        check_minimums::<J>(field, &roles, errors);
    }
    roles
}

/// Checks that each role has its minimum of replicas, and that any role has a replica.
fn check_minimums<J: TrainingJob>(field: FieldPath<'_>, roles: &[Role<'_>], errors: &mut FieldErrors) {
    let replicas = |name: &str| roles.iter().find(|r| r.name() == name).map_or(0, |r| r.replicas);
    let framework = J::FRAMEWORK;
    if !framework.needs_some_role() && roles.iter().all(|r| r.replicas == 0) {
        errors.no_replica(field);
    }
    for definition in framework.roles {
        if replicas(definition.name) < definition.min {
            errors.too_few_replicas(field, definition);
        }
    }
}

fn role<'a, J: TrainingJob>(
    job: &'a J,
    path: FieldPath<'_>,
    definition: &'static RoleDefinition,
    spec: Cow<'a, ReplicaSpec>,
    errors: &mut FieldErrors,
) -> Role<'a> {
    let replicas = spec.replicas.unwrap_or(1);
    let max = definition.max.min(MAX_REPLICAS.unsigned_abs());
    let at = path.member("replicas");
    if replicas < 0 {
        errors.too_small(at, replicas, 0.0);
    } else if replicas.unsigned_abs() > max {
        errors.too_big(at, replicas, max.into());
    }
    let restart_policy = match &spec.restart_policy {
        None => J::FRAMEWORK.restart_policy,
        Some(RestartPolicy::Other(word)) => {
            if !word.is_empty() {
                errors.unknown_word(path.member("restartPolicy"), word, RestartPolicy::WORDS);
            }
            J::FRAMEWORK.restart_policy
        }
        Some(known) => known,
    };
    let (container, port) = template::check(job, path.member("template"), &spec.template, errors);
    Role {
        definition,
        field: path.to_string(),
        slug: definition.slug(),
        names: job.replica_names(definition),
        // An invalid count is reported above, and then the role is not used.
        replicas: u32::try_from(replicas).unwrap_or(0).min(max),
        restart_policy: restart_policy.clone(),
        container,
        port,
        spec,
    }
}
