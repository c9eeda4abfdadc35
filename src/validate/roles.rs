//! Converts replica specs to roles.

use std::borrow::Cow;

use kube_schema::{FieldPath, names};

use crate::api::labels::{self, QUEUE_NAME};
use crate::api::{MAX_REPLICAS, ReplicaSpec, RestartPolicy};
use crate::job::{AnyJob, FieldErrors, Framework, ReplicaNames, Role, RoleDefinition, RoleSource, RoleSpec};

use super::template;

/// Returns the roles in a job's spec, in the framework's order. Adds their errors.
pub(super) fn check<'a>(job: &'a dyn AnyJob, errors: &mut FieldErrors) -> Vec<Role<'a>> {
    let framework = job.framework();
    let spec = FieldPath::At("spec");
    let specs = job.replica_specs();
    let is_at_entry = |entry: &&RoleSpec<'_>| entry.class.is_none();
    let entries: Vec<_> = specs.entries().iter().filter(is_at_entry).collect();
    let known = framework.role_names();
    let field = spec.member(framework.roles_field);
    for entry in &entries {
        if !known.iter().any(|name| name.eq_ignore_ascii_case(&entry.role)) {
            let path = entry.path(&field, RoleSource::Entry);
            errors.unknown_role(path, &job.kind(), &entry.role, &known);
        }
    }
    let mut roles = Vec::new();
    for definition in framework.roles {
        match definition.source.field() {
            None => {
                let named = entries
                    .iter()
                    .filter(|entry| entry.role.eq_ignore_ascii_case(definition.name));
                roles.extend(entry(job, &field, definition, named.copied(), errors));
            }
            Some(field) => {
                let field = spec.member(field);
                let of_class = |entry: &&RoleSpec<'_>| entry.class == Some(definition.name);
                for entry in specs.entries().iter().filter(of_class) {
                    roles.extend(in_field(job, &field, definition, entry, &roles, errors));
                }
            }
        }
    }
    if entries.is_empty() && !known.is_empty() {
        errors.no_role(field, &known);
    } else if errors.is_empty() {
        check_minimums(framework, &roles, errors);
    }
    roles
}

/// Returns the role of the first of `named`, which are the entries with the name of the definition.
fn entry<'a, 's>(
    job: &'a dyn AnyJob,
    field: &FieldPath<'_>,
    definition: &'static RoleDefinition,
    mut named: impl Iterator<Item = &'s RoleSpec<'a>>,
    errors: &mut FieldErrors,
) -> Option<Role<'a>>
where
    'a: 's,
{
    let first = named.next()?;
    let path = first.path(field, definition.source);
    if labels::queue(job.meta()).is_some() && first.role != definition.name {
        // The pods would run outside of the quota. A rule of the definition cannot check this, because rules see no
        // labels.
        errors.push(
            path,
            format!(
                "must be spelled {} in a queued job, because Kueue would not count its pods otherwise",
                definition.name
            ),
            format!("rename it, or remove label {QUEUE_NAME}"),
        );
    }
    for other in named {
        errors.role_twice(other.path(field, definition.source), &first.role);
    }
    let name = Cow::Borrowed(definition.name);
    non_null(first, path, errors).map(|spec| role(job, path, definition, (name, first.index()), spec, errors))
}

/// Returns the role of an entry that has a field of its own, or is one of several in that field. `others` are the roles
/// before it.
fn in_field<'a>(
    job: &'a dyn AnyJob,
    field: &FieldPath<'_>,
    definition: &'static RoleDefinition,
    entry: &RoleSpec<'a>,
    others: &[Role<'a>],
    errors: &mut FieldErrors,
) -> Option<Role<'a>> {
    let path = entry.path(field, definition.source);
    let at = match definition.source {
        RoleSource::List { key, .. } => path.member(key),
        _ => path,
    };
    if definition.source.is_open() && names::label_1035(&entry.role).is_some() {
        errors.bad_role_name(at, &entry.role);
    } else if others.iter().any(|other| other.slug == entry.role.to_lowercase()) {
        errors.role_name_taken(at, &entry.role);
    }
    let spec = non_null(entry, path, errors)?;
    let name = (entry.role.clone(), entry.index());
    let role = role(job, path, definition, name, spec, errors);
    let min = definition.min;
    if definition.source.is_open() && role.replicas < min && errors.is_empty() {
        errors.too_small(role.replicas_path(), role.replicas, min.into());
    }
    Some(role)
}

fn non_null<'a>(
    entry: &RoleSpec<'a>,
    path: FieldPath<'_>,
    errors: &mut FieldErrors,
) -> Option<Cow<'a, ReplicaSpec>> {
    if entry.spec.is_none() {
        errors.push(
            path,
            "must not be null",
            "set replicas and a template, or remove the role",
        );
    }
    entry.spec.clone()
}

/// Checks that each role that all jobs have has its minimum of replicas, and that any role has a replica.
fn check_minimums(framework: &Framework, roles: &[Role<'_>], errors: &mut FieldErrors) {
    if !framework.needs_some_role() && roles.iter().all(|r| r.replicas == 0) {
        errors.no_replica(framework.roles_path());
    }
    for definition in framework.roles.iter().filter(|d| !d.source.is_open()) {
        let role = roles.iter().find(|r| r.class() == definition.name);
        if role.map_or(0, |r| r.replicas) < definition.min {
            let path = match definition.source.field() {
                None => framework.roles_path(),
                Some(field) => format!("spec.{field}"),
            };
            errors.too_few_replicas(path, definition);
        }
    }
}

/// Returns a role of one replica with an empty replica spec, for a role that the job no longer has.
pub(crate) fn role_without_spec<'n>(
    job: &dyn AnyJob,
    definition: &'static RoleDefinition,
    name: &'n str,
) -> Role<'n> {
    let place = (Cow::Borrowed(name), None);
    let spec = Cow::Owned(ReplicaSpec::default());
    role(
        job,
        FieldPath::At("spec"),
        definition,
        place,
        spec,
        &mut FieldErrors::default(),
    )
}

fn role<'a>(
    job: &dyn AnyJob,
    path: FieldPath<'_>,
    definition: &'static RoleDefinition,
    (name, index): (Cow<'a, str>, Option<usize>),
    spec: Cow<'a, ReplicaSpec>,
    errors: &mut FieldErrors,
) -> Role<'a> {
    let replicas = spec.replicas.unwrap_or(1);
    let max = definition.max.min(MAX_REPLICAS.unsigned_abs());
    let at = path.member(definition.replicas_field);
    if replicas < 0 {
        errors.too_small(at, replicas, 0.0);
    } else if replicas.unsigned_abs() > max {
        errors.too_big(at, replicas, max.into());
    }
    let restart_policy = match &spec.restart_policy {
        None => job.framework().restart_policy,
        Some(RestartPolicy::Other(word)) => {
            if !word.is_empty() {
                errors.unknown_word(path.member("restartPolicy"), word, RestartPolicy::WORDS);
            }
            job.framework().restart_policy
        }
        Some(known) => known,
    };
    let slug = name.to_lowercase();
    let service = definition.service.filter(|_| definition.has_service);
    let job_name = job.meta().name.as_deref().unwrap_or_default();
    let mut role = Role {
        definition,
        index,
        field: path.to_string(),
        names: ReplicaNames::Indexed(format!("{job_name}-{slug}")),
        service: service.map(|end| format!("{job_name}-{end}")),
        slug,
        name,
        // An invalid count is reported above, and then the role is not used.
        replicas: u32::try_from(replicas).unwrap_or(0).min(max),
        restart_policy: restart_policy.clone(),
        container: None,
        port: 0,
        spec,
    };
    role.names = job.replica_names(&role);
    let (at, mut known) = (role.template_path(), FieldErrors::default());
    // A template that several roles share has its errors once.
    let is_checked = definition.template_from.is_some() && index.is_some_and(|index| index > 0);
    let errors = if is_checked { &mut known } else { errors };
    (role.container, role.port) = template::check(job, &role, FieldPath::At(&at), errors);
    role
}
