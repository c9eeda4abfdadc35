//! The jobs whose children a quota refuses, and their turns when capacity is freed.
//!
//! When a child of any job is gone or has ended, the job of that namespace that has waited longest tries again. If it gets
//! nothing, the next ones do, one after the other. The first job also tries after its backoff, for capacity that the operator
//! does not see, such as that of other clients' pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube_follow::backoff;
use tokio::time::Instant;
use training_job::plan::ChildKind;

use super::queue::Key;

/// The time from the end of a child until the first try: quotas are updated a moment later.
pub(super) const QUOTA_DELAY: Duration = Duration::from_millis(100);

/// Maximum number of tries of the job in turn, because the quota may be updated later still.
const MAX_TRIES: u32 = 3;

/// Maximum number of jobs that try once each after the first one got nothing.
const MAX_FOLLOWERS: u32 = 2;

/// Maximum number of jobs that look for capacity by themselves. If several did, each could get a part of what one needs.
const MAX_SEEKERS: usize = 1;

/// A quota's extent: a namespace and a kind of children. The namespace is empty for cluster-wide limits.
pub(super) type Scope = (String, ChildKind);

/// Since when a job waits, and its key.
type Place = (Timestamp, Key);

#[derive(Default)]
pub(super) struct QuotaQueue(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: BTreeMap<Key, Waiting>,
    places: BTreeMap<Scope, BTreeSet<Place>>,
    turns: BTreeMap<Scope, Turn>,
}

struct Waiting {
    scope: Scope,
    since: Timestamp,
    /// When this process recorded it.
    recorded_at: Instant,
    /// True if it got a part since. It does not pass its turn on, because two jobs that hold a part may wait for each other.
    holds_part: bool,
}

/// The job that tries now.
struct Turn {
    place: Place,
    tries: u32,
    followers: u32,
}

impl QuotaQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if no job waits.
    pub(super) fn is_empty(&self) -> bool {
        self.state().waiting.is_empty()
    }

    /// Records that a child of this kind is gone or has ended. Returns the jobs whose turn it is.
    pub(super) fn freed(&self, namespace: &str, kind: ChildKind) -> Vec<Key> {
        let state = &mut *self.state();
        let scopes = [(namespace.to_owned(), kind), (String::new(), kind)];
        let first = scopes.into_iter().filter_map(|scope| {
            let place = state.places.get(&scope)?.first()?.clone();
            let turn = Turn {
                place: place.clone(),
                tries: 0,
                followers: MAX_FOLLOWERS,
            };
            state.turns.insert(scope, turn);
            Some(place.1)
        });
        first.collect()
    }

    /// Returns true if it is the job's turn.
    pub(super) fn is_in_turn(&self, key: &Key) -> bool {
        let state = self.state();
        state.turn(key).is_some()
    }

    /// Returns the pause before the next try of a job that failed so many times. It is short in its turn. Only the first job
    /// looks for capacity that others free; when it gets what it needs, the next one has its turn.
    pub(super) fn pause(&self, key: &Key, failures: u32) -> Duration {
        let state = self.state();
        if let Some(turn) = state.turn(key) {
            return backoff(turn.tries, key);
        }
        let own = backoff(failures, key);
        let Some(waiting) = state.waiting.get(key) else {
            return own;
        };
        let longest = backoff(u32::MAX, key);
        let mut first = state
            .places
            .get(&waiting.scope)
            .into_iter()
            .flatten()
            .take(MAX_SEEKERS);
        match first.any(|(_, seeker)| seeker == key) {
            true => own.max(waiting.recorded_at.elapsed()).min(longest),
            false => longest,
        }
    }

    /// Records the result of a reconcile. `refused` is the extent of the quota that refuses a child, and the time since when
    /// the job waits; `progressed` is true if children were created. Returns the job whose turn it is now, if that changed.
    pub(super) fn record(
        &self,
        key: &Key,
        refused: Option<(Scope, Timestamp)>,
        progressed: bool,
    ) -> Option<Key> {
        let state = &mut *self.state();
        let before = state.waiting.get(key).map(|waiting| waiting.scope.clone());
        let waits_on = before.as_ref() == refused.as_ref().map(|(scope, _)| scope);
        if let Some(waiting) = state.waiting.get_mut(key) {
            waiting.holds_part |= progressed;
        }
        let holds_part = state.waiting.get(key).is_some_and(|waiting| waiting.holds_part);
        let is_in_turn = state.turn(key).is_some();
        let scope = before.as_ref().filter(|_| is_in_turn);
        let turn = scope.and_then(|scope| state.turns.remove(scope));
        let next = turn.and_then(|mut turn| {
            let scope = scope?;
            let places = state.places.get(scope)?;
            let mut later = places.range(turn.place.clone()..).skip(1);
            // After a job that got all, the first one has its turn; after one that got nothing, the next one.
            let next = match waits_on {
                true => later.next(),
                false => places.iter().find(|place| place.1 != *key),
            };
            let next = next.filter(|_| !waits_on || turn.followers > 0).cloned();
            turn.tries = if progressed { 0 } else { turn.tries + 1 };
            let passes = !waits_on || turn.tries >= MAX_TRIES && !holds_part;
            if passes {
                turn.place = next.clone()?;
                turn.followers -= u32::from(waits_on);
                // A follower tries once.
                turn.tries = if waits_on { MAX_TRIES - 1 } else { 0 };
            }
            state.turns.insert(scope.clone(), turn);
            next.filter(|_| passes)
        });
        // The place of a job that stays is that of its first refusal.
        if !waits_on {
            state.leave(key);
            if let Some((scope, since)) = refused {
                let places = state.places.entry(scope.clone()).or_default();
                places.insert((since, key.clone()));
                let recorded_at = Instant::now();
                let waiting = Waiting {
                    scope,
                    since,
                    recorded_at,
                    holds_part: progressed,
                };
                state.waiting.insert(key.clone(), waiting);
            }
        }
        next.map(|(_, key)| key)
    }
}

impl State {
    /// Returns the turn of this job, if it has it.
    fn turn(&self, key: &Key) -> Option<&Turn> {
        let turn = self.turns.get(&self.waiting.get(key)?.scope)?;
        Some(turn).filter(|turn| turn.place.1 == *key)
    }

    fn leave(&mut self, key: &Key) {
        let Some(Waiting { scope, since, .. }) = self.waiting.remove(key) else {
            return;
        };
        if let Some(places) = self.places.get_mut(&scope) {
            places.remove(&(since, key.clone()));
            if places.is_empty() {
                self.places.remove(&scope);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            kind: 0,
            namespace: "team".to_owned(),
            name: name.to_owned(),
        }
    }

    fn pods() -> Scope {
        ("team".to_owned(), ChildKind::Pod)
    }

    fn refused(since: i64) -> Option<(Scope, Timestamp)> {
        Some((pods(), Timestamp::from_second(since).unwrap()))
    }

    /// Returns a queue of jobs that began to wait in this order.
    fn waiting(names: &[&str]) -> QuotaQueue {
        let queue = QuotaQueue::default();
        for (since, name) in names.iter().enumerate() {
            assert_eq!(queue.record(&key(name), refused(since as i64), false), None);
        }
        queue
    }

    #[tokio::test(start_paused = true)]
    async fn freed_capacity_is_for_the_job_that_waits_longest_and_then_for_the_next() {
        let queue = waiting(&["c", "b", "a"]);
        assert_eq!(queue.freed("team", ChildKind::Service), []);
        assert_eq!(queue.freed("other", ChildKind::Pod), []);
        assert_eq!(queue.freed("team", ChildKind::Pod), [key("c")]);
        assert_eq!(queue.pause(&key("c"), 9), backoff(0, key("c")));
        assert_eq!(queue.record(&key("c"), None, true), Some(key("b")));
        // It got a part, and keeps its turn.
        assert_eq!(queue.record(&key("b"), refused(9), true), None);
        assert_eq!(queue.record(&key("b"), None, true), Some(key("a")));
        assert_eq!(queue.record(&key("a"), None, true), None);
        assert!(queue.is_empty() && queue.state().turns.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_gets_nothing_passes_its_turn_on_after_the_quota_has_settled() {
        let queue = waiting(&["e", "d", "c", "b", "a"]);
        assert_eq!(queue.freed("team", ChildKind::Pod), [key("e")]);
        let next = |name| queue.record(&key(name), refused(0), false).map(|key| key.name);
        assert_eq!(
            [next("e"), next("e")],
            [None, None],
            "the quota may not be up to date"
        );
        assert_eq!(next("e").as_deref(), Some("d"));
        assert_eq!(next("b"), None, "it is not its turn");
        assert_eq!(next("d").as_deref(), Some("c"));
        assert_eq!(next("c"), None, "the others wait for the next end");
        assert_eq!(queue.freed("team", ChildKind::Pod), [key("e")], "the places stay");
    }

    #[test]
    fn only_the_first_job_looks_for_capacity_often() {
        let queue = waiting(&["d", "c", "b", "a"]);
        let pauses = ["d", "b", "a", "other"].map(|name| queue.pause(&key(name), 2) == backoff(2, key(name)));
        assert_eq!(pauses, [true, false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_is_refused_by_another_quota_waits_for_that_one() {
        let queue = waiting(&["b", "a"]);
        let addresses = Some(((String::new(), ChildKind::Service), Timestamp::UNIX_EPOCH));
        assert_eq!(queue.freed("team", ChildKind::Pod), [key("b")]);
        assert_eq!(queue.record(&key("b"), addresses, false), Some(key("a")));
        assert_eq!(queue.freed("anywhere", ChildKind::Service), [key("b")]);
    }
}
