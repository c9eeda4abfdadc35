//! Variables of the environment.

use k8s_openapi::api::core::v1::EnvVar;

/// The variable `name` with this value, as [`TrainingJob::env`](crate::TrainingJob::env) returns it.
pub fn variable(name: impl Into<String>, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.into(),
        value: Some(value.into()),
        value_from: None,
    }
}
