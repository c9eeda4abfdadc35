//! The work queue, which decides which job is reconciled next.
//!
//! Jobs that have begun go before new jobs, because a status update takes one call and a new job takes a call for
//! each of its children. Both groups are first in, first out. A waiting job is queued once. A job in progress is not
//! handed out again until it is done. The order is deterministic for the same calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A job in the queue: its kind's number, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) kind: usize,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// Consecutive jobs that have begun, after which a new job goes.
const MAX_CONSECUTIVE_BEGUN: u32 = 8;

pub(super) struct Queue {
    state: Mutex<State>,
    changed: Notify,
    /// The number of jobs in `queued`.
    depth: Gauge,
    max_in_progress: usize,
    max_new_in_progress: usize,
}

#[derive(Default)]
struct State {
    begun: VecDeque<Key>,
    new: VecDeque<Key>,
    /// The keys in `begun` and `new`, with the time at which they were queued.
    queued: BTreeMap<Key, Instant>,
    /// Number of jobs taken from `begun` since one was taken from `new`.
    consecutive_begun: u32,
    /// The jobs in progress; true if taken from `new`.
    working: BTreeMap<Key, bool>,
    working_new: usize,
    /// Keys that were added again while in progress.
    again: BTreeSet<Key>,
    due: BTreeMap<Key, Instant>,
    by_time: BTreeSet<(Instant, Key)>,
}

impl Queue {
    /// Creates a queue for at most `max_in_progress` jobs in progress, which keeps `depth` up to date.
    pub(super) fn new(max_in_progress: usize, depth: Gauge) -> Self {
        let max_in_progress = max_in_progress.max(1);
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            depth,
            max_in_progress,
            max_new_in_progress: max_in_progress.div_ceil(2),
        }
    }

    /// Queues a job for reconciling as soon as possible.
    pub(super) fn add(&self, key: Key) {
        self.ready(key, false);
    }

    /// Queues a job that has not begun.
    pub(super) fn add_new(&self, key: Key) {
        self.ready(key, true);
    }

    fn ready(&self, key: Key, is_new: bool) {
        let mut state = self.state.lock();
        state.ready(key, is_new);
        self.record_depth(&state);
        drop(state);
        self.changed.notify_one();
    }

    /// Queues a job for this time, or for an earlier time if one is already set.
    pub(super) fn add_at(&self, key: Key, at: Instant) {
        let mut state = self.state.lock();
        match state.due.get(&key) {
            Some(earlier) if *earlier <= at => return,
            Some(&later) => {
                state.by_time.remove(&(later, key.clone()));
            }
            None => {}
        }
        state.due.insert(key.clone(), at);
        state.by_time.insert((at, key));
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next job and a free slot, and returns the job and the time it waited. The caller calls
    /// [`done`](Self::done) after the reconcile.
    pub(super) async fn next(&self) -> (Key, Duration) {
        loop {
            let changed = self.changed.notified();
            let next_due = {
                let mut state = self.state.lock();
                state.promote(Instant::now());
                self.record_depth(&state);
                if let Some(key) = self.pop(&mut state) {
                    let waited = state.queued.remove(&key).map(|since| since.elapsed());
                    self.record_depth(&state);
                    return (key, waited.unwrap_or_default());
                }
                state.by_time.first().map(|(at, _)| *at)
            };
            match next_due {
                Some(at) => tokio::select! { biased; () = changed => {}, () = sleep_until(at) => {} },
                None => changed.await,
            }
        }
    }

    fn pop(&self, state: &mut State) -> Option<Key> {
        if state.working.len() >= self.max_in_progress {
            return None;
        }
        let may_be_new = state.working_new < self.max_new_in_progress && !state.new.is_empty();
        let is_new =
            may_be_new && (state.consecutive_begun >= MAX_CONSECUTIVE_BEGUN || state.begun.is_empty());
        let key = if is_new {
            state.consecutive_begun = 0;
            state.working_new += 1;
            state.new.pop_front()
        } else {
            state.consecutive_begun = state.consecutive_begun.saturating_add(1);
            state.begun.pop_front()
        }?;
        state.working.insert(key.clone(), is_new);
        Some(key)
    }

    pub(super) fn done(&self, key: &Key) {
        let mut state = self.state.lock();
        if state.working.remove(key) == Some(true) {
            state.working_new -= 1;
        }
        if state.again.remove(key) {
            state.ready(key.clone(), false);
            self.record_depth(&state);
        }
        drop(state);
        self.changed.notify_one();
    }

    fn record_depth(&self, state: &State) {
        self.depth
            .set(i64::try_from(state.queued.len()).unwrap_or(i64::MAX));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.depth.set(0);
    }
}

impl State {
    fn ready(&mut self, key: Key, is_new: bool) {
        if self.working.contains_key(&key) {
            self.again.insert(key);
        } else if !self.queued.contains_key(&key) {
            self.queued.insert(key.clone(), Instant::now());
            if is_new {
                self.new.push_back(key);
            } else {
                self.begun.push_back(key);
            }
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some((at, _)) = self.by_time.first()
            && *at <= now
            && let Some((_, key)) = self.by_time.pop_first()
        {
            self.due.remove(&key);
            self.ready(key, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            kind: 0,
            namespace: "ns".into(),
            name: name.into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_in_progress_is_queued_again_but_not_handed_out_twice() {
        let queue = Queue::new(16, Gauge::default());
        queue.add(key("a"));
        queue.add(key("a"));
        assert_eq!(queue.depth.get(), 1);
        let (a, _) = queue.next().await;
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.next().await.0, key("b"), "a is in work");
        assert_eq!(queue.depth.get(), 0);
        queue.done(&a);
        assert_eq!(queue.next().await.0, key("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn begun_jobs_go_first_but_new_ones_do_not_starve() {
        let queue = Queue::new(64, Gauge::default());
        let names = |prefix: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("{prefix}{n}")).collect()
        };
        names("n", 3).iter().for_each(|name| queue.add_new(key(name)));
        names("b", 12).iter().for_each(|name| queue.add(key(name)));
        let mut order = Vec::new();
        for _ in 0..15 {
            order.push(queue.next().await.0.name);
        }
        let mut expected = names("b", 12);
        expected.insert(8, "n0".to_owned());
        expected.extend(["n1".to_owned(), "n2".to_owned()]);
        assert_eq!(order, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn new_jobs_leave_half_of_the_slots_to_others() {
        let queue = Queue::new(4, Gauge::default());
        for name in ["n0", "n1", "n2"] {
            queue.add_new(key(name));
        }
        let first = queue.next().await.0;
        let _ = queue.next().await;
        let third = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(third.is_err(), "it must wait for one of them");
        queue.add(key("b0"));
        assert_eq!(queue.next().await.0, key("b0"));
        queue.done(&first);
        assert_eq!(queue.next().await.0, key("n2"));
        queue.add(key("b1"));
        queue.add(key("b2"));
        assert_eq!(queue.next().await.0, key("b1"));
        let fifth = tokio::time::timeout(Duration::from_secs(60), queue.next()).await;
        assert!(fifth.is_err(), "four are in work");
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts() {
        let queue = Queue::new(16, Gauge::default());
        let start = Instant::now();
        queue.add_at(key("a"), start + Duration::from_secs(9));
        queue.add_at(key("a"), start + Duration::from_secs(5));
        queue.add_at(key("a"), start + Duration::from_secs(7));
        assert_eq!(queue.next().await.0, key("a"));
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done(&key("a"));
        assert!(
            tokio::time::timeout(Duration::from_secs(60), queue.next())
                .await
                .is_err(),
            "it was due once"
        );
    }
}
