//! The work queue: which job is reconciled next.
//!
//! First come, first served; a job that waits is there once; a job in work is not given out again
//! until it is done. In the same order for the same calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A job in the queue: its kind's number, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) kind: usize,
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Key>,
    /// The keys in `ready`, and since when.
    queued: BTreeMap<Key, Instant>,
    working: BTreeSet<Key>,
    /// Keys that came again while in work.
    again: BTreeSet<Key>,
    due: BTreeMap<Key, Instant>,
    by_time: BTreeSet<(Instant, Key)>,
}

impl Queue {
    /// Looks at a job as soon as may be.
    pub(super) fn add(&self, key: Key) {
        self.lock().ready(key);
        self.changed.notify_one();
    }

    /// Looks at a job at this time, or earlier if that was asked before.
    pub(super) fn add_at(&self, key: Key, at: Instant) {
        let mut state = self.lock();
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

    /// The next job, and how long it waited. The caller says [`done`](Self::done) when it has looked
    /// at it.
    pub(super) async fn next(&self) -> (Key, Duration) {
        loop {
            let changed = self.changed.notified();
            let next_due = {
                let mut state = self.lock();
                state.promote(Instant::now());
                if let Some(key) = state.ready.pop_front() {
                    let waited = state.queued.remove(&key).map(|since| since.elapsed());
                    state.working.insert(key.clone());
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

    /// A job has been reconciled.
    pub(super) fn done(&self, key: &Key) {
        let mut state = self.lock();
        state.working.remove(key);
        if state.again.remove(key) {
            state.ready(key.clone());
            drop(state);
            self.changed.notify_one();
        }
    }

    /// How many jobs wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().ready.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // No code that holds the lock can leave the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn ready(&mut self, key: Key) {
        if self.working.contains(&key) {
            self.again.insert(key);
        } else if !self.queued.contains_key(&key) {
            self.queued.insert(key.clone(), Instant::now());
            self.ready.push_back(key);
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some((at, _)) = self.by_time.first()
            && *at <= now
            && let Some((_, key)) = self.by_time.pop_first()
        {
            self.due.remove(&key);
            self.ready(key);
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
    async fn a_job_in_work_is_not_given_out_twice_and_not_forgotten() {
        let queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        assert_eq!(queue.len(), 1);
        let (a, _) = queue.next().await;
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.next().await.0, key("b"), "a is in work");
        queue.done(&a);
        assert_eq!(queue.next().await.0, key("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts() {
        let queue = Queue::default();
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
