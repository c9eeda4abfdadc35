//! Wait times between retries.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The wait after the first error. It doubles with each further error in a row.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait, before the spread of up to a quarter is added.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(300);

/// Returns the wait after `errors` errors in a row: 0.5 s after the first, doubled with each further one up to 300 s.
/// The wait is lengthened by up to a quarter, so that callers that failed together do not retry together.
///
/// The spread is not random: it is derived from `key` and `errors`, so the same run waits for the same times again.
/// Give each caller its own `key`, such as the name of the object.
///
/// ```
/// use kube_follow::backoff;
///
/// let third = backoff(3, "default/my-job");
/// assert!((2.0..=2.5).contains(&third.as_secs_f64()));
/// assert_eq!(third, backoff(3, "default/my-job"));
/// ```
pub fn backoff(errors: u32, key: impl Hash) -> Duration {
    let wait = FIRST_WAIT
        .saturating_mul(1 << errors.saturating_sub(1).min(16))
        .min(MAX_WAIT);
    spread(wait, (key, errors))
}

/// Returns the wait, lengthened by up to a quarter that is derived from `key`.
pub(crate) fn spread(wait: Duration, key: impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 256).unwrap_or(0);
    wait + wait / 4 * share / 256
}

/// Returns a wait in whole milliseconds, at most [`u64::MAX`], as a field of a log line. `tracing` writes wider
/// integers as text in JSON.
pub fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let base = |errors| backoff(errors, "job").as_secs_f64();
        for errors in 1..9 {
            let exact = 0.5 * f64::from(1 << (errors - 1));
            assert!(
                (exact..=exact * 1.25).contains(&base(errors)),
                "{errors}: {}",
                base(errors)
            );
        }
        assert!((300.0..=375.0).contains(&base(u32::MAX)));
    }

    #[test]
    fn jobs_that_fail_together_do_not_retry_together() {
        let waits: std::collections::BTreeSet<_> = (0..100).map(|job| backoff(1, job)).collect();
        assert!(waits.len() > 50, "{waits:?}");
        assert!(waits.last() > Some(&Duration::from_millis(600)), "{waits:?}");
        assert_eq!(millis(Duration::from_millis(1_234)), 1_234);
    }
}
