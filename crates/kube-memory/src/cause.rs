//! Causes: what validation refuses, field by field (`metav1.StatusCause`).

use serde_json::Value;

/// One field that validation refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) field: String,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Cause {
    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            field: field.into(),
            reason: "FieldValueRequired",
            message,
        }
    }

    pub(super) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {detail}", shown(value)),
        }
    }

    pub(super) fn invalid_text(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value:?}: {detail}"),
        }
    }

    /// As [`Cause::invalid`], of a value that is not shown as JSON.
    pub(super) fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {shown}: {detail}"),
        }
    }

    pub(super) fn wrong_type(field: impl Into<String>, found: &str, wanted: &str) -> Self {
        let field = field.into();
        let message =
            format!("Invalid value: {found:?}: {field} in body must be of type {wanted}: {found:?}");
        Self {
            field,
            reason: "FieldValueTypeInvalid",
            message,
        }
    }

    pub(super) fn unsupported(field: impl Into<String>, value: &Value, allowed: &[String]) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueNotSupported",
            message: format!(
                "Unsupported value: {}: supported values: {}",
                shown(value),
                allowed.join(", ")
            ),
        }
    }

    pub(super) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {}", shown(value)),
        }
    }

    /// As [`Cause::invalid`], of a value that is not shown as JSON.
    pub(super) fn duplicate_text(field: impl Into<String>, shown: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {shown}"),
        }
    }

    pub(super) fn not_found(field: impl Into<String>, value: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueNotFound",
            message: format!("Not found: {value:?}"),
        }
    }

    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {detail}"),
        }
    }

    pub(super) fn too_long(field: impl Into<String>, limit: u64) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {limit} bytes"),
        }
    }

    /// Whether the server skips CEL rules after this cause.
    pub(super) fn blocks_rules(&self) -> bool {
        matches!(
            self.reason,
            "FieldValueNotSupported"
                | "FieldValueRequired"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
                | "FieldValueTypeInvalid"
        )
    }

    pub(super) fn rules_unchecked() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct the existing \
                   errors to complete validation";
        Self::invalid("<nil>", &Value::Null, why)
    }

    pub(super) fn too_many(field: impl Into<String>, found: usize, limit: u64) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueTooMany",
            message: format!("Too many: {found}: must have at most {limit} items"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
