//! The backoff after failures in a row, and the limit on lists without a wait.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::backoff;

/// The time without a failure after which earlier failures no longer count.
const FAILURES_RESET_AFTER: Duration = Duration::from_secs(30);

/// The least time between two lists without a wait. It is longer than any wait; otherwise a watch that is always
/// rejected would list twice each time.
const MIN_IMMEDIATE_LIST_INTERVAL: Duration = Duration::from_secs(300);

/// The number of failures in a row that lengthen the wait, which limits it to 40 s. A cache should not be blind for
/// longer.
const MAX_COUNTED_FAILURES: u32 = 7;

/// Failures in a row.
#[derive(Default)]
pub(super) struct Failures {
    count: u32,
    /// The time at which the last wait ended.
    waited: Option<Instant>,
    /// The time of the last list without a wait.
    listed: Option<Instant>,
}

impl Failures {
    /// Returns true if a list may be made without a wait, and records it. A restarted server does not serve versions
    /// from before. The failures during its absence are then no reason to wait.
    pub(super) fn may_list_at_once(&mut self) -> bool {
        let may = self
            .listed
            .is_none_or(|listed| listed.elapsed() >= MIN_IMMEDIATE_LIST_INTERVAL);
        if may {
            self.listed = Some(Instant::now());
        }
        may
    }

    /// Records one more failure and returns the wait after it. A successful list does not reset the count, because
    /// the watch behind it may fail.
    pub(super) fn next_wait(&mut self, resource: &str) -> Duration {
        if self
            .waited
            .is_some_and(|waited| waited.elapsed() >= FAILURES_RESET_AFTER)
        {
            self.count = 0;
        }
        self.count = (self.count + 1).min(MAX_COUNTED_FAILURES);
        let wait = backoff(self.count, resource);
        self.waited = Some(Instant::now() + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_list_is_made_at_once_but_not_again_and_again() {
        let mut failures = Failures::default();
        assert!(failures.may_list_at_once());
        assert!(!failures.may_list_at_once());
        sleep(MIN_IMMEDIATE_LIST_INTERVAL).await;
        assert!(failures.may_list_at_once());
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_until_all_is_calm() {
        let mut failures = Failures::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let wait = failures.next_wait("pods");
            waits.push(wait.as_secs_f64());
            sleep(wait).await;
        }
        assert!(waits.is_sorted(), "{waits:?}");
        assert!((32.0..=40.0).contains(&waits[11]), "{waits:?}");
        sleep(FAILURES_RESET_AFTER).await;
        assert!(failures.next_wait("pods") < Duration::from_secs(1));
    }
}
