//! Names the running hook, so that a panic in it can be reported.

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

/// Returns the name of the hook whose panic was caught in this thread; `None` if the panic was in no hook.
#[doc(hidden)]
pub fn take_panicked_hook() -> Option<&'static str> {
    RUNNING.take()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn the_innermost_hook_that_panics_is_named() {
        assert_eq!(hook("env", || hook("labels", || 1)), 1);
        assert_eq!(take_panicked_hook(), None);
        let outer = catch_unwind(|| hook("env", || panic!("{}", hook("labels", || "outer"))));
        assert!(outer.is_err());
        assert_eq!(take_panicked_hook(), Some("env"));
        let inner = catch_unwind(|| hook("env", || hook("labels", || panic!("inner"))));
        assert!(inner.is_err());
        assert_eq!(take_panicked_hook(), Some("labels"));
        assert_eq!(take_panicked_hook(), None);
    }
}
