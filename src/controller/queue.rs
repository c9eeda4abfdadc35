//! The work queue: which job is reconciled next.
//!
//! Jobs that have begun go before jobs that have not: of them something is to be told, which takes one call, while a new
//! one takes a call for each of its children. Of either, first come, first served. A job that waits is there once; a job
//! in work is not given out again until it is done. In the same order for the same calls.

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

/// Jobs that have begun in a row, after which one goes that has not.
const ROW: u32 = 8;

pub(super) struct Queue {
    state: Mutex<State>,
    changed: Notify,
    /// Jobs in work at once, and those of them that have not begun.
    most: usize,
    most_new: usize,
}

#[derive(Default)]
struct State {
    begun: VecDeque<Key>,
    new: VecDeque<Key>,
    /// The keys in `begun` and `new`, and since when.
    queued: BTreeMap<Key, Instant>,
    /// How many have been taken from `begun` since one was taken from `new`.
    in_row: u32,
    /// The jobs in work, and whether they were taken from `new`.
    working: BTreeMap<Key, bool>,
    working_new: usize,
    /// Keys that came again while in work.
    again: BTreeSet<Key>,
    due: BTreeMap<Key, Instant>,
    by_time: BTreeSet<(Instant, Key)>,
}

impl Queue {
    /// A queue for so many jobs in work at once.
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            most,
            most_new: most.div_ceil(2),
        }
    }

    /// Looks at a job as soon as may be.
    pub(super) fn add(&self, key: Key) {
        self.lock().ready(key, false);
        self.changed.notify_one();
    }

    /// Looks at a job that has not begun.
    pub(super) fn add_new(&self, key: Key) {
        self.lock().ready(key, true);
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

    /// The next job, when there is room for one more in work, and how long it waited. The caller says
    /// [`done`](Self::done) when it has looked at it.
    pub(super) async fn next(&self) -> (Key, Duration) {
        loop {
            let changed = self.changed.notified();
            let next_due = {
                let mut state = self.lock();
                state.promote(Instant::now());
                if let Some(key) = self.pop(&mut state) {
                    let waited = state.queued.remove(&key).map(|since| since.elapsed());
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
        if state.working.len() >= self.most {
            return None;
        }
        let may_be_new = state.working_new < self.most_new && !state.new.is_empty();
        let is_new = may_be_new && (state.in_row >= ROW || state.begun.is_empty());
        let key = if is_new {
            state.in_row = 0;
            state.working_new += 1;
            state.new.pop_front()
        } else {
            state.in_row = state.in_row.saturating_add(1);
            state.begun.pop_front()
        }?;
        state.working.insert(key.clone(), is_new);
        Some(key)
    }

    /// A job has been reconciled.
    pub(super) fn done(&self, key: &Key) {
        let mut state = self.lock();
        if state.working.remove(key) == Some(true) {
            state.working_new -= 1;
        }
        if state.again.remove(key) {
            state.ready(key.clone(), false);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// How many jobs wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().queued.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // No code that holds the lock can leave the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn a_job_in_work_is_not_given_out_twice_and_not_forgotten() {
        let queue = Queue::new(16);
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
    async fn what_has_begun_goes_first_but_not_for_ever() {
        let queue = Queue::new(64);
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
    async fn new_jobs_leave_half_of_the_places_to_others() {
        let queue = Queue::new(4);
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
        let queue = Queue::new(16);
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
