//! Annotations that stand for fields of the spec.
//!
//! Clients that use the Go operator's types drop fields that these types do not have, but keep annotations. So each
//! such field has an annotation with the same meaning ([`Keys::annotation_of`](crate::api::labels::Keys::annotation_of)). A word is written as it is, and other
//! values as JSON or YAML.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use kube_schema::{Schema, Type, field};
use serde_json::{Map, Value};

use super::schema;
use crate::api::RunPolicy;
use crate::job::{AnyJob, FieldErrors, Framework, Kind};

/// The maximum size of an annotation that stands for a field, in bytes. The longest failure policy takes a third of
/// it.
const MAX_ANNOTATION_BYTES: usize = 32_768;

/// The maximum number of values in such an annotation.
const MAX_ANNOTATION_NODES: usize = 4_096;

/// The maximum depth of objects and lists in such an annotation.
const MAX_ANNOTATION_DEPTH: usize = 16;

const REMEDY: &str = "use the field's value as JSON, or as YAML without anchors";

/// A field of the spec that an annotation may stand for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct AnnotatedField {
    /// The field below `spec`, such as `runPolicy.failurePolicy`.
    pub field: String,
    /// The key of the annotation.
    pub annotation: String,
}

impl AnnotatedField {
    /// Returns the annotated fields of a kind: those of the run policy, even if the kind has none, then the kind's
    /// own.
    pub fn of(framework: &Framework) -> impl Iterator<Item = Self> + use<> {
        let of_policy = RunPolicy::ANNOTATED_FIELDS.map(|name| (name, format!("runPolicy.{name}")));
        let own = framework
            .annotated_fields
            .iter()
            .map(|name| (*name, (*name).to_owned()));
        let keys = framework.keys();
        of_policy.into_iter().chain(own).map(move |(name, field)| Self {
            field,
            annotation: keys.annotation_of(name),
        })
    }

    /// Returns the name of the field without its parents.
    fn name(&self) -> &str {
        self.field.rsplit('.').next().unwrap_or_default()
    }

    fn is_of_run_policy(&self) -> bool {
        self.field.contains('.')
    }

    /// Returns the schema of the field, if the kind has the field.
    fn schema<'k>(&self, kind: &'k Kind) -> Option<&'k Schema> {
        let spec = kind.schemas().stored()?.property("spec")?;
        self.field
            .split('.')
            .try_fold(spec, |schema, name| schema.property(name))
    }

    /// Returns the path of the annotation.
    fn path(&self) -> String {
        field("metadata.annotations", &self.annotation)
    }
}

/// Returns the path where a job sets the field `name` of its run policy: its annotation if present, or else the
/// field.
pub(crate) fn path_of(job: &dyn AnyJob, name: &str) -> String {
    let key = job.framework().keys().annotation_of(name);
    let annotations = job.meta().annotations.as_ref();
    match annotations.is_some_and(|all| all.contains_key(&key)) {
        true => field("metadata.annotations", &key),
        false => job.run_policy_field(name),
    }
}

/// A job with the fields that its annotations stand for.
#[derive(Clone, Debug)]
pub enum AnnotatedJob<'a> {
    /// The stored job. Its annotations stand for no field, or for fields that it has.
    Stored(&'a dyn AnyJob),
    /// The job with more fields than the stored one.
    FilledIn(Arc<dyn AnyJob>),
}

impl Deref for AnnotatedJob<'_> {
    type Target = dyn AnyJob;

    fn deref(&self) -> &dyn AnyJob {
        match self {
            Self::Stored(job) => *job,
            Self::FilledIn(job) => &**job,
        }
    }
}

/// A job with the fields that its annotations stand for, and their sources.
#[derive(Clone, Debug)]
pub struct Annotated<'a> {
    /// The job.
    pub job: AnnotatedJob<'a>,
    /// The paths of the fields that come from annotations, each with the path of its annotation.
    filled_in: Vec<(String, String)>,
}

impl Annotated<'_> {
    /// Returns the path in the annotations for a `path` in the fields that come from them.
    fn locate(&self, path: &str) -> Option<String> {
        self.filled_in.iter().find_map(|(field, annotation)| {
            let rest = path.strip_prefix(field.as_str())?;
            let is_below = rest.is_empty() || rest.starts_with(['.', '[']);
            is_below.then(|| format!("{annotation}{rest}"))
        })
    }

    /// Returns the errors with the paths of fields that come from annotations replaced by those of the annotations.
    pub(crate) fn relocate(&self, errors: FieldErrors) -> FieldErrors {
        if self.filled_in.is_empty() {
            return errors;
        }
        let mut located = FieldErrors::default();
        for error in errors {
            let path = self.locate(&error.path).unwrap_or(error.path);
            located.push(path, error.problem, error.remedy);
        }
        located
    }
}

/// Returns the job with the fields that only its annotations have. Adds an error for each annotation that cannot be
/// read, does not fit the field, or differs from the field that the job has.
pub fn apply<'a>(kind: &Kind, job: &'a dyn AnyJob, errors: &mut FieldErrors) -> Annotated<'a> {
    let unchanged = Annotated {
        job: AnnotatedJob::Stored(job),
        filled_in: Vec::new(),
    };
    let annotations = job.meta().annotations.iter().flatten();
    let annotations: BTreeMap<&str, &str> = annotations
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(key, text)| (key.as_str(), text.as_str()))
        .collect();
    if annotations.is_empty()
        || !AnnotatedField::of(&kind.framework).any(|f| annotations.contains_key(f.annotation.as_str()))
    {
        return unchanged;
    }
    // Every decoded job can be encoded.
    let Ok(mut object) = job.to_json() else {
        return unchanged;
    };
    let mut filled_in = Vec::new();
    for of in AnnotatedField::of(&kind.framework) {
        let Some(text) = annotations.get(of.annotation.as_str()) else {
            continue;
        };
        let Some(schema) = of.schema(kind) else {
            continue;
        };
        let value = match read(text, schema) {
            Ok(value) => value,
            Err(problem) => {
                errors.push(of.path(), problem, REMEDY);
                continue;
            }
        };
        if !schema::check_part(schema, &value, &of.path(), errors) {
            continue;
        }
        let Some(members) = members(&mut object, &of) else {
            continue;
        };
        let path = match of.is_of_run_policy() {
            true => job.run_policy_field(of.name()),
            false => format!("spec.{}", of.field),
        };
        match members.get(of.name()).filter(|there| !is_unset(there)) {
            None => {
                members.insert(of.name().to_owned(), value);
                filled_in.push((path, of.path()));
            }
            Some(there) if same(there, &value) => {}
            Some(_) => errors.differs_from(of.path(), &path),
        }
    }
    if filled_in.is_empty() {
        return unchanged;
    }
    match kind.decode(&object) {
        Ok(job) => Annotated {
            job: AnnotatedJob::FilledIn(job.into()),
            filled_in,
        },
        Err(error) => {
            for (_, annotation) in filled_in {
                errors.push(annotation, error.to_string(), REMEDY);
            }
            unchanged
        }
    }
}

/// Parses the text of an annotation.
fn read(text: &str, schema: &Schema) -> Result<Value, String> {
    if schema.type_() == Some(Type::String) {
        return Ok(Value::String(text.trim().to_owned()));
    }
    if text.len() > MAX_ANNOTATION_BYTES {
        return Err(format!(
            "must be at most {MAX_ANNOTATION_BYTES} bytes (has {})",
            text.len()
        ));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_documents: 1,
            max_nodes: MAX_ANNOTATION_NODES,
            max_depth: MAX_ANNOTATION_DEPTH,
        },
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("must be JSON or YAML: {}", first_line(&error.to_string())))?;
    Ok(without_nulls(value))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns the object that has the field. Creates it if it is missing.
fn members<'o>(object: &'o mut Value, of: &AnnotatedField) -> Option<&'o mut Map<String, Value>> {
    let mut members = object.get_mut("spec")?.as_object_mut()?;
    if let Some((parents, _)) = of.field.rsplit_once('.') {
        for parent in parents.split('.') {
            let there = members.entry(parent).or_insert(Value::Null);
            if there.is_null() {
                *there = Value::Object(Map::new());
            }
            members = there.as_object_mut()?;
        }
    }
    Some(members)
}

/// Returns true if a value is not set. Go clients write "" for a word that is not set.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// Returns true if both values are equal. An empty member equals a missing one.
fn same(one: &Value, other: &Value) -> bool {
    bare(one) == bare(other)
}

fn bare(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.clone(), bare(member)));
            let is_empty = |member: &Value| match member {
                Value::Array(items) => items.is_empty(),
                Value::Object(members) => members.is_empty(),
                other => is_unset(other),
            };
            Value::Object(members.filter(|(_, member)| !is_empty(member)).collect())
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

/// Returns the value as the API server stores it: without null members.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(
                members
                    .map(|(key, member)| (key, without_nulls(member)))
                    .collect(),
            )
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
