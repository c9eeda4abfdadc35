//! Causes: the fields that validation rejects (`metav1.StatusCause`).

use serde_json::Value;

/// One field that validation rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
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

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {detail}", shown(value)),
        }
    }

    pub(crate) fn invalid_text(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value:?}: {detail}"),
        }
    }

    /// Like [`Cause::invalid`], for a value that is not shown as JSON.
    pub(crate) fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {shown}: {detail}"),
        }
    }

    /// Like [`Cause::invalid`], for a value that is not shown.
    #[cfg(feature = "rules")]
    pub(crate) fn invalid_without_value(field: impl Into<String>, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {detail}"),
        }
    }

    pub(crate) fn wrong_type(field: impl Into<String>, found: &str, wanted: &str) -> Self {
        let field = field.into();
        let message =
            format!("Invalid value: {found:?}: {field} in body must be of type {wanted}: {found:?}");
        Self {
            field,
            reason: "FieldValueTypeInvalid",
            message,
        }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, allowed: &[String]) -> Self {
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

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {}", shown(value)),
        }
    }

    /// Like `duplicate`, for a value that is not shown as JSON.
    pub(crate) fn duplicate_text(field: impl Into<String>, shown: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {shown}"),
        }
    }

    pub(crate) fn not_found(field: impl Into<String>, value: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueNotFound",
            message: format!("Not found: {value:?}"),
        }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {detail}"),
        }
    }

    pub(crate) fn too_long(field: impl Into<String>, limit: u64) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {limit} bytes"),
        }
    }

    /// Returns true if the server skips CEL rules after this cause.
    pub(crate) fn blocks_rules(&self) -> bool {
        matches!(
            self.reason,
            "FieldValueNotSupported"
                | "FieldValueRequired"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
                | "FieldValueTypeInvalid"
        )
    }

    pub(crate) fn rules_unchecked() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct the existing \
                   errors to complete validation";
        Self::invalid("<nil>", &Value::Null, why)
    }

    pub(crate) fn too_many(field: impl Into<String>, found: usize, limit: u64) -> Self {
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
