//! Checks a job of a manifest without an API server: first against the schema, as an API server does, then with
//! [`validate_any`].

use std::collections::BTreeMap;

use kube_schema::{Schema, Step, field, names};
use serde_json::Value;

use super::prune::{is_consequence_of_pruning, prune_invalid_fields};
use super::{leftovers, misplaced, pod, schema, validate_any};
use crate::job::{AnyJob, FieldError, FieldErrors, Framework, Kind, SchemaVersion, Settings};

/// The maximum number of unknown roles whose right places are searched.
const MAX_UNKNOWN_ROLES: usize = 10;

/// The maximum number of further nulls that a warning about nulls names.
const MAX_NAMED_NULLS: usize = 5;

/// A valid job of a manifest.
#[derive(Debug)]
pub struct ManifestJob {
    /// The job; [valid](validate_any) with the default settings.
    pub job: Box<dyn AnyJob>,
    /// The object of the manifest in the stored version, without its status and null fields. The defaults of the
    /// original version for fields of the spec itself are filled in.
    pub object: Value,
    /// Warnings about fields that the API server drops or changes silently.
    pub warnings: FieldErrors,
}

/// Checks an object of `kind` from a manifest.
///
/// Misspelled fields and values of the wrong type are reported with the path of the field, and the rest of the job is
/// checked all the same. Defaults of the job's API version for fields of the spec itself are filled in, as the API
/// server does before it stores the job in another version. The status is ignored, as the API server ignores the status
/// of a new job.
///
/// A job with `metadata.generateName` and no name gets a placeholder of the length that its name will have: the prefix
/// and `xxxxx`. Keys without a value, which the API server drops, and fields of older clusters are warnings.
///
/// # Errors
/// Returns all errors of the job, ordered by path. If the object fits the schema but cannot be decoded, there is one
/// error with an empty path.
pub fn check(kind: &Kind, object: &Value) -> Result<ManifestJob, FieldErrors> {
    let schemas = kind.schemas();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let Some(SchemaVersion { schema, defaults, .. }) = schemas.version(api_version) else {
        let mut errors = FieldErrors::default();
        errors.push(
            "apiVersion",
            format!("unknown API version {api_version:?} of {}", kind.name()),
            format!(
                "use one of {}",
                schemas.api_versions().collect::<Vec<_>>().join(", ")
            ),
        );
        return Err(errors);
    };
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    let mut warnings = FieldErrors::default();
    leftovers::remove(&mut object, &mut warnings);
    let is_generated = leftovers::complete_name(&mut object);
    let mut nulls = FieldErrors::default();
    let by_schema = schema::check(schema, &object, &mut nulls);
    let misplaced_roles = misplaced_roles(&kind.framework, schema, &object);
    let removed = prune_invalid_fields(schema, &mut object);
    if let (Some(stored), Some(members)) = (schemas.api_versions().next(), object.as_object_mut()) {
        members.insert("apiVersion".to_owned(), stored.into());
        // The missing fields of a missing part are then reported.
        for part in ["metadata", "spec"] {
            members
                .entry(part)
                .or_insert_with(|| Value::Object(Default::default()));
        }
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        for (field, default) in defaults {
            spec.entry(field).or_insert_with(|| default.clone());
        }
    }
    let mut errors: BTreeMap<String, FieldError> =
        by_schema.into_iter().map(|e| (e.path.clone(), e)).collect();
    let unknown: Vec<_> = misplaced_roles.iter().map(|(path, ..)| path.clone()).collect();
    let remedies: Vec<_> = errors.values().map(|error| error.remedy.clone()).collect();
    // A field that is missing because its value is in a wrong place is not an error of its own.
    let is_elsewhere = |path: &String| remedies.contains(&schema::move_to(std::slice::from_ref(path)));
    errors.retain(|path, _| !is_within(path, &unknown) && !is_elsewhere(path));
    if let Some(namespace) = object["metadata"]["namespace"].as_str()
        && !namespace.is_empty()
        && names::label_1123(namespace).is_some()
    {
        let path = "metadata.namespace".to_owned();
        let error = FieldError {
            path: path.clone(),
            problem: format!("must be a valid name of a namespace (is {namespace:?})"),
            remedy: "use at most 63 lower-case letters, digits and '-', such as team-a".to_owned(),
        };
        errors.insert(path, error);
    }
    match kind.decode(&object) {
        Ok(job) => {
            let mut refused = FieldErrors::default();
            pod::check(
                &*job,
                &mut pod::Found {
                    errors: &mut refused,
                    warnings: &mut warnings,
                },
            );
            let invalid = validate_any(kind, &*job, &Settings::default())
                .err()
                .unwrap_or_default();
            // Of two errors in one field, the later one is more specific: that of the schema comes first, then that of
            // the pod, and that of the validation.
            if !refused.is_empty() || !invalid.is_empty() {
                let more = refused
                    .into_iter()
                    .chain(invalid)
                    .filter(|e| !is_consequence_of_pruning(&e.path, &removed));
                let more = more.map(|e| match e.path.as_str() {
                    "metadata.name" if is_generated => FieldError {
                        path: "metadata.generateName".to_owned(),
                        ..e
                    },
                    _ => e,
                });
                let more = more.filter(|e| !is_within(&e.path, &unknown) && !is_elsewhere(&e.path));
                let more: Vec<_> = more.collect();
                // A null that explains an error is reported with it.
                let dropped: Vec<_> = nulls.iter().map(|null| null.path.clone()).collect();
                let explained = more.iter().any(|e| is_consequence_of_pruning(&e.path, &dropped));
                errors.extend(more.into_iter().map(|e| (e.path.clone(), e)));
                if explained {
                    errors.extend(nulls.iter().map(|e| (e.path.clone(), e.clone())));
                }
            }
            for (path, role, remedy) in misplaced_roles {
                let problem = format!("{} has no role {role}", kind.name());
                let error = FieldError {
                    path,
                    problem,
                    remedy,
                };
                errors.insert(error.path.clone(), error);
            }
            if errors.is_empty() {
                push_nulls(nulls, &mut warnings);
                return Ok(ManifestJob {
                    job,
                    object,
                    warnings,
                });
            }
        }
        // A field that the schema requires is missing, and is already reported.
        Err(_) if !errors.is_empty() => {}
        Err(error) => return Err(error.into()),
    }
    let mut all = FieldErrors::default();
    for error in errors.into_values() {
        all.push(error.path, error.problem, error.remedy);
    }
    Err(all)
}

/// Adds one warning about all nulls, because a template that leaves some leaves many.
fn push_nulls(nulls: FieldErrors, warnings: &mut FieldErrors) {
    let mut nulls = nulls.into_iter();
    let Some(first) = nulls.next() else { return };
    let others: Vec<_> = nulls.map(|null| null.path).collect();
    let in_template = |path: &String| path.rsplit(".template.").next().unwrap_or_default().to_owned();
    let named: Vec<_> = others.iter().take(MAX_NAMED_NULLS).map(in_template).collect();
    let more = match others.len() {
        0 => return warnings.push(first.path, first.problem, first.remedy),
        1..=MAX_NAMED_NULLS => "",
        _ => ", …",
    };
    let named = named.join(", ");
    let problem = format!(
        "{}, and {} more nulls are: {named}{more}",
        first.problem,
        others.len()
    );
    warnings.push(first.path, problem, first.remedy);
}

/// Returns the fields among the roles that belong to another place: their paths, names and remedies.
fn misplaced_roles(framework: &Framework, schema: &Schema, object: &Value) -> Vec<(String, String, String)> {
    let roles_field = framework.roles_field;
    let known = framework.role_names();
    let roles = object.get("spec").and_then(|spec| spec.get(roles_field));
    let roles = roles.and_then(Value::as_object).into_iter().flatten();
    let unknown = roles.filter(|(role, _)| !known.iter().any(|name| name.eq_ignore_ascii_case(role)));
    let unknown = unknown.take(MAX_UNKNOWN_ROLES).filter_map(|(role, value)| {
        let steps = [
            Step::Member("spec"),
            Step::Member(roles_field),
            Step::Member(role),
        ];
        let places = misplaced::places(schema, object, &steps, value);
        let path = field(&field("spec", roles_field), role);
        (!places.is_empty()).then(|| (path, role.clone(), schema::move_to(&places)))
    });
    unknown.collect()
}

/// Returns true if a path is one of `fields` or within one of them.
fn is_within(path: &str, fields: &[String]) -> bool {
    fields.iter().any(|field| {
        path.strip_prefix(field.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}
