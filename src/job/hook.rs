//! Names the running hook, so that a panic in it can be reported. A bug in one kind must not stop the jobs of the others.

use std::any::Any;
use std::cell::Cell;

thread_local! {
    static RUNNING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Calls a hook of [`TrainingJob`](crate::TrainingJob) under its name.
pub(crate) fn hook<T>(name: &'static str, call: impl FnOnce() -> T) -> T {
    let outer = RUNNING.replace(Some(name));
    // A panic skips the rest, so that the name remains.
    let result = call();
    RUNNING.set(outer);
    result
}

/// A panic that was caught.
#[doc(hidden)]
#[derive(Debug)]
pub struct HookPanic {
    /// The name of the hook; `None` if the panic was in no hook.
    pub hook: Option<&'static str>,
    /// The message of the panic.
    pub message: String,
}

impl HookPanic {
    /// Reads the payload of a panic that was caught in this thread.
    pub fn caught(payload: &(dyn Any + Send)) -> Self {
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied());
        Self {
            hook: RUNNING.take(),
            message: message.unwrap_or("no message").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn the_innermost_hook_that_panics_is_named() {
        assert_eq!(hook("env", || hook("labels", || 1)), 1);
        assert_eq!(HookPanic::caught(&"none").hook, None);
        let outer = catch_unwind(|| hook("env", || panic!("{}", hook("labels", || "outer"))));
        let outer = HookPanic::caught(&*outer.unwrap_err());
        assert_eq!((outer.hook, &*outer.message), (Some("env"), "outer"));
        let inner = catch_unwind(|| hook("env", || hook("labels", || panic!("inner"))));
        let inner = HookPanic::caught(&*inner.unwrap_err());
        assert_eq!((inner.hook, &*inner.message), (Some("labels"), "inner"));
        assert_eq!(HookPanic::caught(&"none").hook, None);
    }
}
