//! The jobs whose children a quota refuses, and their turns when capacity is freed.
//!
//! When a child of any job is gone or has ended, the job of that namespace that has waited longest tries again. If it gets
//! nothing, the next ones do, one after the other. The first job also tries after its backoff, for capacity that the operator
//! does not see, such as that of other clients' pods.
//!
//! Jobs that each hold a part of what they need could wait for each other for ever. So one job at most keeps its part, and is
//! the first in the queue: others give back what they have just created, and new jobs do not try while it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kube_follow::backoff;
use parking_lot::Mutex;
use tokio::time::Instant;
use training_job::plan::ChildKind;

use super::queue::Key;

/// The time from the end of a child until the first try: quotas are updated a moment later.
pub(super) const QUOTA_DELAY: Duration = Duration::from_millis(100);

/// Maximum number of tries of the job in turn, because the quota may be updated later still.
const MAX_TRIES: u32 = 3;

/// Maximum number of jobs that try once each after the first one got nothing.
const MAX_FOLLOWERS: u32 = 2;

/// Maximum time for which a new job waits behind one that holds a part before it tries. The quota that refuses that one may
/// not limit this one, such as a quota of devices.
pub(super) const MAX_WAIT_UNTRIED: Duration = Duration::from_secs(10);

/// A quota's extent: a namespace and a kind of children. The namespace is empty for cluster-wide limits.
pub(super) type Scope = (String, ChildKind);

/// A job's place in the queue. A job that holds a part is before the others, and then the one that has waited longest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    holds_nothing: bool,
    since: Timestamp,
    key: Key,
}

/// The part of the children of one kind that a refused job holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Nothing,
    /// Only children that this reconcile has created, and which therefore have done no work.
    New,
    /// Children that may have done work.
    Kept,
}

/// The consequences of a reconcile for this job and the others.
pub(super) struct Recorded {
    /// The job whose turn it is now, if that changed.
    pub(super) next: Option<Key>,
    /// True if the job must delete its new part, because another job holds one.
    pub(super) gives_back: bool,
}

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
    place: Place,
    /// When this process recorded it.
    recorded_at: Instant,
}

/// The job that tries now.
struct Turn {
    place: Place,
    tries: u32,
    followers: u32,
}

impl QuotaQueue {
    /// Returns true if no job waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().waiting.is_empty()
    }

    /// Records that a child of this kind is gone or has ended. Returns the jobs whose turn it is.
    pub(super) fn freed(&self, namespace: &str, kind: ChildKind) -> Vec<Key> {
        let state = &mut *self.0.lock();
        let scopes = [(namespace.to_owned(), kind), (String::new(), kind)];
        let first = scopes.into_iter().filter_map(|scope| {
            let place = state.places.get(&scope)?.first()?.clone();
            let turn = Turn {
                place: place.clone(),
                tries: 0,
                followers: MAX_FOLLOWERS,
            };
            state.turns.insert(scope, turn);
            Some(place.key)
        });
        first.collect()
    }

    /// Returns true if it is the job's turn.
    pub(super) fn is_in_turn(&self, key: &Key) -> bool {
        self.0.lock().turn(key).is_some()
    }

    /// Returns true if this job has not been refused children of this extent, and another one that holds a part has been.
    pub(super) fn must_queue(&self, key: &Key, scope: &Scope) -> bool {
        let state = self.0.lock();
        !state.waiting.contains_key(key) && state.holder(scope).is_some()
    }

    /// Returns the pause before the next try of a job that failed so many times. It is short in its turn. Only the first job
    /// looks for capacity that others free; when it gets what it needs, the next one has its turn.
    pub(super) fn pause(&self, key: &Key, failures: u32) -> Duration {
        let state = self.0.lock();
        if let Some(turn) = state.turn(key) {
            return backoff(turn.tries, key);
        }
        let own = backoff(failures, key);
        let Some(waiting) = state.waiting.get(key) else {
            return own;
        };
        let longest = backoff(u32::MAX, key);
        let first = state.places.get(&waiting.scope).and_then(BTreeSet::first);
        match first.is_some_and(|first| first.key == *key) {
            true => own.max(waiting.recorded_at.elapsed()).min(longest),
            false => longest,
        }
    }

    /// Records the result of a reconcile. `refused` is the extent of the quota that refuses a child, and the time since when
    /// the job waits; `part` is what it holds, and `progressed` is true if children were created.
    pub(super) fn record(
        &self,
        key: &Key,
        refused: Option<(Scope, Timestamp)>,
        part: Part,
        progressed: bool,
    ) -> Recorded {
        let state = &mut *self.0.lock();
        let before = state.waiting.get(key).map(|waiting| waiting.scope.clone());
        let waits_on = before.as_ref() == refused.as_ref().map(|(scope, _)| scope);
        let holder = refused.as_ref().and_then(|(scope, _)| state.holder(scope));
        let gives_back = part == Part::New && holder.is_some_and(|holder| holder.key != *key);
        let progressed = progressed && !gives_back;
        let turn = before.as_ref().filter(|_| state.turn(key).is_some());
        let turn = turn.and_then(|scope| Some((scope, state.turns.remove(scope)?)));
        // The time of the first refusal decides about the place of a job that stays.
        if let Some((scope, since)) = refused {
            let stays = state.leave(key).filter(|_| waits_on);
            let (since, recorded_at) =
                stays.map_or_else(|| (since, Instant::now()), |w| (w.place.since, w.recorded_at));
            let place = Place {
                holds_nothing: gives_back || part == Part::Nothing,
                since,
                key: key.clone(),
            };
            let places = state.places.entry(scope.clone()).or_default();
            places.insert(place.clone());
            let waiting = Waiting {
                scope,
                place,
                recorded_at,
            };
            state.waiting.insert(key.clone(), waiting);
        } else {
            state.leave(key);
        }
        let next = turn.and_then(|(scope, turn)| state.pass_on(key, scope, turn, waits_on, progressed));
        Recorded { next, gives_back }
    }
}

impl State {
    /// Returns the turn of this job, if it has it.
    fn turn(&self, key: &Key) -> Option<&Turn> {
        let turn = self.turns.get(&self.waiting.get(key)?.scope)?;
        Some(turn).filter(|turn| turn.place.key == *key)
    }

    /// Returns the first job that holds a part, if any does.
    fn holder(&self, scope: &Scope) -> Option<&Place> {
        let first = self.places.get(scope)?.first()?;
        Some(first).filter(|place| !place.holds_nothing)
    }

    /// Ends this job's turn or keeps it, and returns the job whose turn it is then, if it is another one. `waits_on` is true if
    /// the job is still refused.
    fn pass_on(
        &mut self,
        key: &Key,
        scope: &Scope,
        mut turn: Turn,
        waits_on: bool,
        progressed: bool,
    ) -> Option<Key> {
        let places = self.places.get(scope)?;
        turn.tries = if progressed { 0 } else { turn.tries + 1 };
        if waits_on && turn.tries < MAX_TRIES {
            turn.place = self.waiting.get(key)?.place.clone();
            self.turns.insert(scope.clone(), turn);
            return None;
        }
        // After a job that got all, the first one has its turn; after one that got nothing, the next one.
        let next = match waits_on {
            true => places
                .iter()
                .find(|place| **place > turn.place && place.key != *key),
            false => places.first(),
        };
        let next = next.filter(|_| !waits_on || turn.followers > 0)?.clone();
        let turn = Turn {
            place: next.clone(),
            followers: turn.followers - u32::from(waits_on),
            // A follower tries once.
            tries: if waits_on { MAX_TRIES - 1 } else { 0 },
        };
        self.turns.insert(scope.clone(), turn);
        Some(next.key)
    }

    fn leave(&mut self, key: &Key) -> Option<Waiting> {
        let waiting = self.waiting.remove(key)?;
        if let Some(places) = self.places.get_mut(&waiting.scope) {
            places.remove(&waiting.place);
            if places.is_empty() {
                self.places.remove(&waiting.scope);
            }
        }
        Some(waiting)
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

    /// Records what a job holds after a reconcile. It has created children if that is a new part, or if it got all.
    fn record(
        queue: &QuotaQueue,
        name: &str,
        refused: Option<(Scope, Timestamp)>,
        part: Part,
    ) -> Option<Key> {
        let progressed = part != Part::Nothing || refused.is_none();
        let recorded = queue.record(&key(name), refused, part, progressed);
        assert!(!recorded.gives_back);
        recorded.next
    }

    /// Returns a queue of jobs that began to wait in this order.
    fn waiting(names: &[&str]) -> QuotaQueue {
        let queue = QuotaQueue::default();
        for (since, name) in names.iter().enumerate() {
            assert_eq!(record(&queue, name, refused(since as i64), Part::Nothing), None);
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
        assert_eq!(record(&queue, "c", None, Part::New), Some(key("b")));
        // It got a part, and keeps its turn.
        assert_eq!(record(&queue, "b", refused(9), Part::New), None);
        assert_eq!(record(&queue, "b", None, Part::Kept), Some(key("a")));
        assert_eq!(record(&queue, "a", None, Part::New), None);
        assert!(queue.is_empty() && queue.0.lock().turns.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_gets_nothing_passes_its_turn_on_after_the_quota_has_settled() {
        let queue = waiting(&["e", "d", "c", "b", "a"]);
        assert_eq!(queue.freed("team", ChildKind::Pod), [key("e")]);
        let next = |name| record(&queue, name, refused(0), Part::Nothing).map(|key| key.name);
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
        assert_eq!(record(&queue, "b", addresses, Part::Nothing), Some(key("a")));
        assert_eq!(queue.freed("anywhere", ChildKind::Service), [key("b")]);
    }

    /// A job whose pods have run keeps its part beside another job's.
    #[tokio::test(start_paused = true)]
    async fn one_job_at_most_keeps_a_new_part_and_is_before_the_others() {
        let queue = waiting(&["c", "b", "a"]);
        let outcome = |name, part| {
            let recorded = queue.record(&key(name), refused(9), part, true);
            (recorded.next.map(|key| key.name), recorded.gives_back)
        };
        let other = ("team".to_owned(), ChildKind::Service);
        assert!(!queue.must_queue(&key("new"), &pods()), "no job holds a part");
        assert_eq!(outcome("a", Part::New), (None, false));
        assert!(queue.must_queue(&key("new"), &pods()) && !queue.must_queue(&key("new"), &other));
        assert!(
            !queue.must_queue(&key("b"), &pods()),
            "it has been refused already"
        );
        assert_eq!(outcome("b", Part::New), (None, true));
        assert_eq!(outcome("ran-before", Part::Kept), (None, false));
        assert_eq!(queue.freed("team", ChildKind::Pod), [key("a")]);
        assert_eq!(outcome("a", Part::Kept), (None, false));
        assert_eq!(record(&queue, "a", None, Part::Kept), Some(key("ran-before")));
        assert_eq!(record(&queue, "ran-before", None, Part::Kept), Some(key("c")));
        // It gives its part back only while another job holds one.
        assert_eq!(outcome("c", Part::New), (None, false));
    }
}
