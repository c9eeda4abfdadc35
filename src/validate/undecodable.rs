//! The errors of an object that cannot be decoded.

use serde_json::{Value, json};

use super::schema;
use crate::job::{FieldErrors, Kind};

/// Returns the errors of the spec of an `object` that cannot be decoded as a job of `kind`, with their fields, by the schema of
/// the stored version. Returns None if the schema allows the spec.
pub fn undecodable(kind: &Kind, object: &Value) -> Option<FieldErrors> {
    let spec = json!({ "spec": object.get("spec") });
    let errors = schema::check(kind.schemas().stored()?, &spec, &mut FieldErrors::default());
    (!errors.is_empty()).then_some(errors)
}
