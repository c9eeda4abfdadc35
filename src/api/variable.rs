//! Environment variables.

use k8s_openapi::api::core::v1::EnvVar;

/// Returns an environment variable with a literal value, as in [`TrainingJob::env`](crate::TrainingJob::env).
pub fn variable(name: impl Into<String>, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.into(),
        value: Some(value.into()),
        value_from: None,
    }
}
