//! Capacity that finished pods free, and the gangs that wait for it.
//!
//! A scheduler with coscheduling does not retry a gang when other pods end, so the operator has to write to the
//! gang's PodGroup. This module records when capacity was last freed, and which waiting jobs are next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::queue::Key;

/// Maximum number of jobs that are reconciled when a pod frees capacity: with a thousand waiting jobs, each end of a
/// pod would otherwise cause a thousand writes.
const AT_ONCE: usize = 16;

/// The time of the last freed capacity, and the jobs that wait for capacity.
#[derive(Default)]
pub(super) struct Room(Mutex<State>);

#[derive(Default)]
struct State {
    left_at: Option<Timestamp>,
    /// The waiting jobs, each with its number in `turns`.
    waiting: BTreeMap<Key, u64>,
    turns: BTreeSet<(u64, Key)>,
    last_turn: u64,
}

impl Room {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when a pod last freed capacity, if known.
    pub(super) fn left_at(&self) -> Option<Timestamp> {
        self.state().left_at
    }

    /// Records that the job waits for capacity, or no longer does.
    pub(super) fn set(&self, key: &Key, waits: bool) {
        let state = &mut *self.state();
        match (waits, state.waiting.get(key)) {
            (true, None) => state.enter(key.clone()),
            (false, Some(turn)) => {
                state.turns.remove(&(*turn, key.clone()));
                state.waiting.remove(key);
            }
            _ => {}
        }
    }

    /// Records that a pod freed capacity now. Returns the jobs that are next: those that have waited longest since
    /// their last turn.
    pub(super) fn leave(&self, now: Timestamp) -> Vec<Key> {
        let state = &mut *self.state();
        state.left_at = Some(now);
        let due: Vec<Key> = state
            .turns
            .iter()
            .take(AT_ONCE)
            .map(|(_, key)| key.clone())
            .collect();
        for key in &due {
            if let Some(turn) = state.waiting.remove(key) {
                state.turns.remove(&(turn, key.clone()));
            }
            state.enter(key.clone());
        }
        due
    }
}

impl State {
    fn enter(&mut self, key: Key) {
        self.last_turn += 1;
        self.turns.insert((self.last_turn, key.clone()));
        self.waiting.insert(key, self.last_turn);
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
    fn jobs_take_turns_when_room_is_left() {
        let room = Room::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!((room.left_at(), room.leave(at(1)).len()), (None, 0));
        assert_eq!(room.left_at(), Some(at(1)));
        for number in 0..20 {
            room.set(&key(number), true);
            room.set(&key(number), true);
        }
        room.set(&key(3), false);
        room.set(&key(40), false);
        let names = |keys: Vec<Key>| keys.iter().map(|key| key.name[4..].parse().unwrap()).collect();
        let first: Vec<usize> = names(room.leave(at(2)));
        assert_eq!(first, [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let second: Vec<usize> = names(room.leave(at(3)));
        assert_eq!(
            second[..5],
            [17, 18, 19, 0, 1],
            "those that were looked at come last"
        );
    }
}
