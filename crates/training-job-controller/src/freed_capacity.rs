//! Capacity that finished pods free, and the gangs that wait for it.
//!
//! A scheduler with coscheduling does not retry a gang when other pods end, so the operator has to write to the
//! gang's PodGroup. This module records when capacity was last freed, and which waiting jobs are next.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use parking_lot::Mutex;

use super::queue::Key;

/// Maximum number of jobs that are reconciled when a pod frees capacity: with a thousand waiting jobs, each end of a
/// pod would otherwise cause a thousand writes.
const MAX_NUDGED_JOBS: usize = 16;

/// The time of the last freed capacity, and the jobs that wait for capacity.
#[derive(Default)]
pub(super) struct FreedCapacity(Mutex<State>);

#[derive(Default)]
struct State {
    last_freed_at: Option<Timestamp>,
    /// The waiting jobs, each with its position in `order`.
    waiting: BTreeMap<Key, u64>,
    order: BTreeSet<(u64, Key)>,
    last_position: u64,
}

impl FreedCapacity {
    /// Returns when a pod last freed capacity, if known.
    pub(super) fn last_freed_at(&self) -> Option<Timestamp> {
        self.0.lock().last_freed_at
    }

    /// Records that the job waits for capacity, or no longer does.
    pub(super) fn set_waiting(&self, key: &Key, waits: bool) {
        let state = &mut *self.0.lock();
        match (waits, state.waiting.get(key)) {
            (true, None) => state.append(key.clone()),
            (false, Some(position)) => {
                state.order.remove(&(*position, key.clone()));
                state.waiting.remove(key);
            }
            _ => {}
        }
    }

    /// Records that a pod freed capacity now. Returns the jobs that are next: those that have waited longest since
    /// their last turn.
    pub(super) fn pod_finished(&self, now: Timestamp) -> Vec<Key> {
        let state = &mut *self.0.lock();
        state.last_freed_at = Some(now);
        let due: Vec<Key> = state
            .order
            .iter()
            .take(MAX_NUDGED_JOBS)
            .map(|(_, key)| key.clone())
            .collect();
        for key in &due {
            if let Some(position) = state.waiting.remove(key) {
                state.order.remove(&(position, key.clone()));
            }
            state.append(key.clone());
        }
        due
    }
}

impl State {
    fn append(&mut self, key: Key) {
        self.last_position += 1;
        self.order.insert((self.last_position, key.clone()));
        self.waiting.insert(key, self.last_position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key {
            kind: 0,
            namespace: "team".to_owned(),
            name: format!("job-{number:02}"),
        }
    }

    #[test]
    fn waiting_jobs_take_turns_when_capacity_is_freed() {
        let freed = FreedCapacity::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(freed.last_freed_at(), None);
        assert_eq!(freed.pod_finished(at(1)).len(), 0);
        assert_eq!(freed.last_freed_at(), Some(at(1)));
        for number in 0..20 {
            freed.set_waiting(&key(number), true);
            freed.set_waiting(&key(number), true);
        }
        freed.set_waiting(&key(3), false);
        freed.set_waiting(&key(40), false);
        let names = |keys: Vec<Key>| keys.iter().map(|key| key.name[4..].parse().unwrap()).collect();
        let first: Vec<usize> = names(freed.pod_finished(at(2)));
        assert_eq!(first, [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let second: Vec<usize> = names(freed.pod_finished(at(3)));
        assert_eq!(
            second[..5],
            [17, 18, 19, 0, 1],
            "those that were looked at come last"
        );
    }
}
