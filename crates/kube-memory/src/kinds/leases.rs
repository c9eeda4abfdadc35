//! Validation of leases.

use serde_json::Value;

use crate::object::{cause::Cause, document::Document};

pub(crate) fn validate(lease: &Document) -> Vec<Cause> {
    let mut causes = Vec::new();
    let number = |key: &str| {
        lease
            .get("spec")
            .and_then(|spec| spec.get(key))
            .and_then(Value::as_i64)
    };
    let field = |key: &str| format!("spec.{key}");
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let why = "must be greater than 0";
        causes.push(Cause::invalid(
            field("leaseDurationSeconds"),
            &Value::from(seconds),
            why,
        ));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid(
            field("leaseTransitions"),
            &Value::from(count),
            why,
        ));
    }
    causes
}
