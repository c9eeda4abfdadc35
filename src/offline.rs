//! Jobs as JSON of any kind, for commands that work without a cluster. A panic of a hook is an error of the job.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use crate::api::JobStatus;
use crate::job::HookPanic;
use crate::render::{self, decode, warnings};
use crate::validate::{manifest, other_manager, validate_any};
use crate::{FieldErrors, Kind, Settings};

/// A valid job of a manifest.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CheckedJob {
    /// The object in the stored version of its kind, without its status and null fields.
    pub object: Value,
    /// Settings that are valid but almost certainly a mistake.
    pub warnings: FieldErrors,
    /// The field that gives the job to another controller, and the name of that controller.
    pub other_manager: Option<(String, String)>,
}

/// Checks an object of a manifest, as [`manifest::check`] does.
///
/// # Errors
/// All errors of the job, ordered by path.
pub fn check(kind: &Kind, object: &Value) -> Result<CheckedJob, FieldErrors> {
    as_error(kind.name(), || {
        let checked = manifest::check(kind, object)?;
        let mut warnings = warnings(&validate_any(kind, &*checked.job, &Settings::default())?);
        for dropped in checked.warnings {
            warnings.push(dropped.path, dropped.problem, dropped.remedy);
        }
        Ok(CheckedJob {
            object: checked.object,
            warnings,
            other_manager: other_manager(&*checked.job),
        })
    })
}

/// Validates a stored object, as [`validate_any`] does.
///
/// # Errors
/// All errors of the job, ordered by path; one error without a path if the object does not have a job's shape.
pub fn validate(kind: &Kind, object: &Value, settings: &Settings) -> Result<(), FieldErrors> {
    as_error(kind.name(), || {
        validate_any(kind, &*decode(kind, object)?, settings).map(drop)
    })
}

/// Returns the objects of a job, in the order in which an operator with these settings creates them.
///
/// # Errors
/// The job is invalid.
pub fn render(kind: &Kind, object: &Value, settings: &Settings) -> Result<Vec<Value>, FieldErrors> {
    as_error(kind.name(), || {
        let job = decode(kind, object)?;
        Ok(render::all(&validate_any(kind, &*job, settings)?).values()?)
    })
}

/// Returns the status of a stored object; the default if it has none.
pub fn status(kind: &Kind, object: &Value) -> JobStatus {
    let job = decode(kind, object).ok();
    job.and_then(|job| job.status().cloned()).unwrap_or_default()
}

/// Calls a function that calls hooks of `kind`. A panic in one of them becomes an error of the job as a whole.
fn as_error<T>(kind: &str, call: impl FnOnce() -> Result<T, FieldErrors>) -> Result<T, FieldErrors> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let HookPanic { hook, message } = HookPanic::caught(&*payload);
        let place = hook.map_or_else(|| kind.to_owned(), |hook| format!("the hook {hook} of {kind}"));
        let mut errors = FieldErrors::default();
        errors.push(
            "",
            format!("{place} panicked: {message}"),
            "report it to the authors of the kind",
        );
        Err(errors)
    })
}
