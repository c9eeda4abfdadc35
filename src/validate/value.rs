//! Checks values that are not jobs, such as the configuration file of an operator, as jobs are checked.

use kube_schema::Schema;
use serde_json::Value;

use super::schema::check_part;
use crate::job::FieldErrors;

/// Returns the errors of `value` by `schema`, with the same problems and remedies as the fields of a job.
pub fn check(schema: &Schema, value: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    check_part(schema, value, "", &mut errors);
    errors
}
