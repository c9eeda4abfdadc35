//! Finds jobs that Kueue's MultiKueue runs in another cluster. Its copies lack the fields that the Go operator's
//! types lack.

use serde_json::Value;
use training_job::api::RunPolicy;
use training_job::api::labels::MULTIKUEUE_ORIGIN;
use training_job::validate::annotations::AnnotatedField;

use crate::kinds::Kinds;

/// Returns the fields of a job that its copy will lack, with the annotations that would replace them. Returns none if
/// this cluster runs the job itself.
pub(super) fn lost_fields(job: &Value, kinds: &Kinds) -> Vec<AnnotatedField> {
    let multikueue = RunPolicy::MANAGERS[1];
    let manager = [&job["spec"]["runPolicy"]["managedBy"], &job["spec"]["managedBy"]];
    if !manager.iter().any(|manager| **manager == multikueue) {
        return Vec::new();
    }
    let is_lost = |of: &AnnotatedField| is_set(field(job, of)) && !has_annotation(job, of);
    annotated_fields(job, kinds).filter(is_lost).collect()
}

/// Returns true if the job is a copy from another cluster and sets no field that the Go operator's types lack.
pub(super) fn is_bare_copy(job: &Value, kinds: &Kinds) -> bool {
    let has_setting = |of: AnnotatedField| is_set(field(job, &of)) || has_annotation(job, &of);
    let origin = &job["metadata"]["labels"][MULTIKUEUE_ORIGIN];
    !origin.is_null() && !annotated_fields(job, kinds).any(has_setting)
}

fn annotated_fields(job: &Value, kinds: &Kinds) -> impl Iterator<Item = AnnotatedField> {
    let mut kinds = kinds.iter();
    let kind =
        kinds.find(|kind| job["kind"] == kind.name() && job["apiVersion"] == kind.resource.api_version);
    kind.into_iter()
        .flat_map(|kind| AnnotatedField::of(&kind.framework))
}

fn field<'j>(job: &'j Value, of: &AnnotatedField) -> &'j Value {
    of.field.split('.').fold(&job["spec"], |value, name| &value[name])
}

/// Returns true if a value is set. Go clients write "" for an unset string.
fn is_set(value: &Value) -> bool {
    !value.is_null() && *value != ""
}

fn has_annotation(job: &Value, of: &AnnotatedField) -> bool {
    let annotation = &job["metadata"]["annotations"][&of.annotation];
    annotation.as_str().is_some_and(|text| !text.trim().is_empty())
}
