//! The errors of an object that cannot be decoded.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use kube_schema::Schema;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::schema;
use crate::job::{FieldErrors, TrainingJob};

/// Returns the errors of the spec of an `object` that cannot be decoded as a `J`, with their fields, by the schema of
/// the stored version. Returns None if the schema allows the spec.
pub fn undecodable<J: TrainingJob>(object: &Value) -> Option<FieldErrors> {
    // Built for the first such object, because it takes a while.
    static SCHEMAS: Mutex<BTreeMap<TypeId, Arc<Schema>>> = Mutex::new(BTreeMap::new());
    let mut schemas = SCHEMAS.lock();
    let schema = match schemas.get(&TypeId::of::<J>()) {
        Some(schema) => schema.clone(),
        None => {
            let stored = J::definition().spec.versions.into_iter().find(|v| v.storage)?;
            let schema = Arc::new(schema::read(&stored.schema?.open_api_v3_schema?));
            schemas.insert(TypeId::of::<J>(), schema.clone());
            schema
        }
    };
    drop(schemas);
    let spec = json!({ "spec": object.get("spec") });
    let errors = schema::check(&schema, &spec, &mut FieldErrors::default());
    (!errors.is_empty()).then_some(errors)
}
