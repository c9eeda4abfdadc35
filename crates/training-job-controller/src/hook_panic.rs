//! Panics of hooks. A bug in one kind must not stop the jobs of the others.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use training_job::FieldErrors;
use training_job::job::take_panicked_hook;

/// A panic that was caught.
pub(super) struct HookPanic {
    /// The name of the hook; `None` if the panic was outside of the hooks.
    pub(super) hook: Option<&'static str>,
    pub(super) message: String,
}

impl HookPanic {
    /// Reads the payload of a panic that was caught in this thread.
    pub(super) fn new(payload: &(dyn Any + Send)) -> Self {
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
        Self {
            hook: take_panicked_hook(),
            message: message.unwrap_or("no message").to_owned(),
        }
    }
}

/// Calls a function that calls hooks of `kind`. A panic in one of them becomes an error of the job as a whole.
pub(super) fn as_error<T>(
    kind: &str,
    call: impl FnOnce() -> Result<T, FieldErrors>,
) -> Result<T, FieldErrors> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let HookPanic { hook, message } = HookPanic::new(&*payload);
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
