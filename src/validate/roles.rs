//! Replica specs → roles.

use crate::api::{MAX_REPLICAS, ReplicaSpec, RestartPolicy};
use crate::job::{FieldErrors, Role, RoleKind, TrainingJob};
use kube_syntax::FieldPath;

use super::template;

/// The roles that a job names, in the framework's order, and what is wrong with them.
pub(super) fn check<'a, J: TrainingJob>(job: &'a J, errors: &mut FieldErrors) -> Vec<Role<'a>> {
    let framework = J::FRAMEWORK;
    let spec = FieldPath::At("spec");
    let field = spec.member(framework.specs_field);
    let specs = job.replica_specs();
    let known: Vec<&str> = framework.roles.iter().map(|r| r.name).collect();
    for key in specs.keys() {
        if !known.iter().any(|name| name.eq_ignore_ascii_case(key)) {
            errors.unknown_role(field.key(key), &J::kind(&()), key, &known);
        }
    }
    let mut roles = Vec::new();
    for kind in framework.roles {
        let mut named = specs
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(kind.name));
        let Some((key, spec)) = named.next() else { continue };
        for (other, _) in named {
            errors.role_twice(field.key(other), key);
        }
        let path = field.member(key);
        match spec {
            None => errors.push(
                path,
                "it is null",
                "give the role replicas and a template, or leave it out",
            ),
            Some(spec) => roles.push(role::<J>(path, kind, spec, errors)),
        }
    }
    if specs.is_empty() {
        errors.no_role(field, &known);
    } else if errors.is_empty() && roles.iter().all(|r| r.replicas == 0) {
        errors.no_replica(field);
    }
    roles
}

fn role<'a, J: TrainingJob>(
    path: FieldPath<'_>,
    kind: &'static RoleKind,
    spec: &'a ReplicaSpec,
    errors: &mut FieldErrors,
) -> Role<'a> {
    let replicas = spec.replicas.unwrap_or(1);
    let max = kind
        .max
        .map_or(MAX_REPLICAS, |max| max.try_into().unwrap_or(MAX_REPLICAS));
    let at = path.member("replicas");
    if replicas < 0 {
        errors.too_small(at, replicas, 0.0);
    } else if replicas > max {
        errors.too_big(at, replicas, max.into());
    }
    let restart_policy = match &spec.restart_policy {
        None => J::FRAMEWORK.restart_policy,
        Some(RestartPolicy::Other(word)) if word.is_empty() => J::FRAMEWORK.restart_policy,
        Some(RestartPolicy::Other(word)) => {
            errors.unknown_word(path.member("restartPolicy"), word, RestartPolicy::WORDS);
            J::FRAMEWORK.restart_policy
        }
        Some(known) => known.clone(),
    };
    let port = template::check::<J>(path.member("template"), &spec.template, errors);
    // Bad counts are reported above; nobody sees the role unless there are none.
    let replicas = u32::try_from(replicas.clamp(0, max)).unwrap_or(0);
    Role {
        kind,
        field: path.to_string(),
        lower: kind.name.to_lowercase(),
        replicas,
        restart_policy,
        port,
        spec,
    }
}
