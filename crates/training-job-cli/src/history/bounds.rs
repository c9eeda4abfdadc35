//! Selects the stories to keep (pure).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use training_job_kubectl::story::Entry;

/// The bounds of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) jobs: usize,
    pub(crate) bytes: u64,
    pub(crate) age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            jobs: 1_000,
            bytes: 256 << 20,
            age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

impl Limits {
    /// Returns the oldest end of a job that is kept at `now`.
    fn oldest(&self, now: Timestamp) -> Timestamp {
        let age = SignedDuration::try_from(self.age).unwrap_or(SignedDuration::MAX);
        now.checked_sub(age).unwrap_or(Timestamp::MIN)
    }

    /// Removes the entries that exceed the bounds from `entries`, the oldest first, and returns them. The others are sorted
    /// by time.
    pub(super) fn remove_surplus(&self, entries: &mut Vec<Entry>, now: Timestamp) -> Vec<Entry> {
        entries.sort_by(|a, b| (a.at, &a.file).cmp(&(b.at, &b.file)));
        let oldest = self.oldest(now);
        let (mut jobs, mut bytes) = (0_usize, 0_u64);
        let newest_first = entries.iter().rev();
        let kept = newest_first
            .take_while(|entry| {
                jobs += 1;
                bytes = bytes.saturating_add(entry.bytes);
                jobs <= self.jobs && bytes <= self.bytes && entry.at >= oldest
            })
            .count();
        let surplus = entries.len() - kept;
        entries.drain(..surplus).collect()
    }

    /// Returns true if the story of a job that ended then would be removed at once. `removed` is the end of the newest job
    /// whose story was removed.
    pub(super) fn excludes(&self, ended: Timestamp, removed: Option<Timestamp>, now: Timestamp) -> bool {
        ended < self.oldest(now) || removed.is_some_and(|removed| ended <= removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        jobs: 3,
        bytes: 100,
        age: Duration::from_secs(50),
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn entries(all: &[(i64, u64)]) -> Vec<Entry> {
        let entry = |(second, bytes): &(i64, u64)| Entry {
            file: format!("{second}"),
            bytes: *bytes,
            at: at(*second),
        };
        all.iter().map(entry).collect()
    }

    /// Returns the times of the kept and of the removed entries.
    fn split(all: &[(i64, u64)], now: i64) -> (Vec<i64>, Vec<i64>) {
        let mut kept = entries(all);
        let removed = LIMITS.remove_surplus(&mut kept, at(now));
        let times = |entries: &[Entry]| entries.iter().map(|entry| entry.at.as_second()).collect();
        (times(&kept), times(&removed))
    }

    #[test]
    fn the_oldest_go_first_for_each_bound() {
        assert_eq!(split(&[(3, 1), (1, 1), (2, 1)], 10), (vec![1, 2, 3], vec![]));
        assert_eq!(
            split(&[(3, 1), (1, 1), (4, 1), (2, 1)], 10),
            (vec![2, 3, 4], vec![1])
        );
        assert_eq!(split(&[(1, 40), (2, 40), (3, 40)], 10), (vec![2, 3], vec![1]));
        assert_eq!(
            split(&[(1, 1), (2, 101), (3, 1)], 10),
            (vec![3], vec![1, 2]),
            "one that is too large"
        );
        assert_eq!(split(&[(9, 1), (10, 1), (11, 1)], 60), (vec![10, 11], vec![9]));
        assert_eq!(split(&[(1, 1)], 1_000), (vec![], vec![1]));
        assert_eq!(
            split(&[(2_000, 1)], 1_000),
            (vec![2_000], vec![]),
            "a clock that was set back"
        );
    }

    #[test]
    fn jobs_whose_stories_would_be_removed_at_once_are_left_out() {
        assert!(LIMITS.excludes(at(9), None, at(60)));
        assert!(!LIMITS.excludes(at(10), None, at(60)));
        assert!(LIMITS.excludes(at(20), Some(at(20)), at(60)));
        assert!(!LIMITS.excludes(at(21), Some(at(20)), at(60)));
    }
}
