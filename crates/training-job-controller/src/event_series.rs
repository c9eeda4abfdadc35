//! Repeated events of a job, counted as in client-go's correlator.
//!
//! A repeated event raises the count of the stored one, at most once a second. After some similar events, further
//! events that differ only in their message are combined. Each job has a budget of writes: it starts with a burst,
//! and gains one write per [`TOKEN_INTERVAL`]. Without tokens a repetition waits, and a new event is dropped unless it
//! reports the end of the job.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use training_job::plan::PlannedEvent;

/// Time after an event in which an equal event counts as a repetition.
const REPETITION_WINDOW: Duration = Duration::from_secs(600);

/// The minimum interval between two writes of one event.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

/// Number of events with one reason in a [`REPETITION_WINDOW`] from which further events are combined.
const MAX_SIMILAR: usize = 10;

/// The initial and maximum number of event writes that a job may make at once.
const MAX_TOKENS: f64 = 25.0;

/// The time in which a job gains one write.
const TOKEN_INTERVAL: Duration = Duration::from_secs(300);

/// The interval at which old events are forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);

/// The prefix of the message of combined events, as in client-go.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// The UID of a job, and the hash of one of its events.
pub(super) type EventKey = (String, u64);

#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// Create it with this key and message.
    Create(u64, String),
    /// Raise the count of the stored event at this time.
    RepeatAt(u64, Instant),
    /// Nothing, because a write of the stored event is already due.
    Counted,
    /// Nothing, because the job has too many events.
    Drop,
}

/// The wanted state of a stored event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Repetition {
    /// The name of the stored event.
    pub(super) name: String,
    pub(super) count: i32,
    /// The time of the last occurrence.
    pub(super) last: Timestamp,
    /// The latest message of combined events.
    pub(super) message: Option<String>,
}

/// An event within the [`REPETITION_WINDOW`].
struct Recent {
    key: u64,
    reason: u64,
    event: Repetition,
    stored_count: i32,
    /// True if a write of the event waits or is in flight.
    is_pending: bool,
    last_seen: Instant,
}

struct JobEvents {
    tokens: f64,
    refilled: Instant,
    recent: Vec<Recent>,
}

/// The recent events of all jobs.
pub(super) struct EventSeries {
    jobs: HashMap<String, JobEvents>,
    forgotten: Instant,
    /// True if the server forbids this operator to patch events.
    is_patch_denied: bool,
}

impl Default for EventSeries {
    fn default() -> Self {
        Self {
            jobs: HashMap::new(),
            forgotten: Instant::now(),
            is_patch_denied: false,
        }
    }
}

impl EventSeries {
    /// Counts an event of the job with this UID. `name` is used if the event is created. `ends_job` is true for an
    /// event that reports the end of the job.
    pub(super) fn record(
        &mut self,
        uid: &str,
        event: &PlannedEvent,
        name: &str,
        at: Timestamp,
        ends_job: bool,
    ) -> Decision {
        let now = Instant::now();
        self.forget(now);
        let is_patch_denied = self.is_patch_denied;
        let job = self.jobs.entry(uid.to_owned()).or_insert_with(|| JobEvents {
            tokens: MAX_TOKENS,
            refilled: now,
            recent: Vec::new(),
        });
        job.refill(now);
        let reason = hash(&(event.warning, &event.reason));
        let mut key = hash(&(event.warning, &event.reason, &event.message));
        let is_known = job.recent.iter().any(|recent| recent.key == key);
        let similar = job.recent.iter().filter(|recent| recent.reason == reason).count();
        // Events stay combined while they continue, even after the first of them are forgotten.
        let is_combining = job.recent.iter().any(|recent| recent.key == reason);
        let combined = !is_known && (is_combining || similar >= MAX_SIMILAR) && !ends_job;
        let mut message = event.message.clone();
        if combined {
            key = reason;
            message.insert_str(0, COMBINED_PREFIX);
        }
        let known = job.recent.iter_mut().find(|recent| recent.key == key);
        if let Some(known) = known.filter(|_| !is_patch_denied) {
            known.event.count = known.event.count.saturating_add(1);
            known.event.last = at;
            known.event.message = combined.then_some(message);
            known.last_seen = now;
            if known.is_pending {
                return Decision::Counted;
            }
            known.is_pending = true;
            return Decision::RepeatAt(key, job.next_write(now));
        }
        if job.tokens < 1.0 && !ends_job {
            return Decision::Drop;
        }
        job.tokens -= 1.0;
        job.recent.retain(|recent| recent.key != key);
        job.recent.push(Recent {
            key,
            reason,
            event: Repetition {
                name: name.to_owned(),
                count: 1,
                last: at,
                message: None,
            },
            stored_count: 1,
            is_pending: true,
            last_seen: now,
        });
        Decision::Create(key, message)
    }

    /// Returns the wanted state of the stored event, if it is still remembered.
    pub(super) fn repetition(&mut self, key: &EventKey) -> Option<Repetition> {
        let recent = self.find(key)?;
        recent.stored_count = recent.event.count;
        Some(recent.event.clone())
    }

    /// Records a successful write of an event. Returns when the next write is due, if the event has occurred
    /// meanwhile.
    pub(super) fn written(&mut self, key: &EventKey) -> Option<Instant> {
        let recent = self.find(key)?;
        recent.is_pending = recent.event.count > recent.stored_count;
        let is_due = recent.is_pending;
        let job = self.jobs.get_mut(&key.0)?;
        is_due.then(|| job.next_write(Instant::now()))
    }

    /// Records a failed write of an event. The next event of this kind is created anew.
    pub(super) fn failed(&mut self, key: &EventKey, denied: bool) {
        self.is_patch_denied |= denied;
        if let Some(job) = self.jobs.get_mut(&key.0) {
            job.recent.retain(|recent| recent.key != key.1);
        }
    }

    fn find(&mut self, key: &EventKey) -> Option<&mut Recent> {
        let job = self.jobs.get_mut(&key.0)?;
        job.recent.iter_mut().find(|recent| recent.key == key.1)
    }

    fn forget(&mut self, now: Instant) {
        if now.duration_since(self.forgotten) < FORGET_INTERVAL {
            return;
        }
        self.forgotten = now;
        self.jobs.retain(|_, job| {
            job.refill(now);
            job.recent.retain(|recent| {
                recent.is_pending || now.duration_since(recent.last_seen) < REPETITION_WINDOW
            });
            !job.recent.is_empty() || job.tokens < MAX_TOKENS
        });
    }
}

impl JobEvents {
    fn refill(&mut self, now: Instant) {
        let passed = now.duration_since(self.refilled).as_secs_f64();
        self.tokens = MAX_TOKENS.min(self.tokens + passed / TOKEN_INTERVAL.as_secs_f64());
        self.refilled = now;
    }

    /// Takes a token, and returns when the write may be made.
    fn next_write(&mut self, now: Instant) -> Instant {
        self.refill(now);
        self.tokens -= 1.0;
        let owed = TOKEN_INTERVAL.mul_f64((-self.tokens).max(0.0));
        now + owed.max(MIN_WRITE_INTERVAL)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep_until};

    use super::*;

    fn event(message: &str) -> PlannedEvent {
        PlannedEvent {
            warning: true,
            reason: "Restarting".to_owned(),
            message: message.to_owned(),
        }
    }

    fn record(series: &mut EventSeries, message: &str) -> Decision {
        series.record("u", &event(message), "name", Timestamp::UNIX_EPOCH, false)
    }

    /// Records events every `every` seconds for `seconds` and makes each write on time. Returns the numbers of
    /// created and of patched events, and the last count.
    async fn crash_loop(seconds: u64, every: u64, message: impl Fn(u64) -> String) -> (u32, u32, i32) {
        let mut series = EventSeries::default();
        let (mut created, mut patched, mut count) = (0, 0, 0);
        for n in 0..seconds / every {
            let mut decision = record(&mut series, &message(n));
            let begin = Instant::now();
            loop {
                let key = match decision {
                    Decision::Create(key, _) => {
                        created += 1;
                        key
                    }
                    Decision::RepeatAt(key, at) if at.duration_since(begin).as_secs() <= every => {
                        sleep_until(at).await;
                        count = series.repetition(&("u".to_owned(), key)).unwrap().count;
                        patched += 1;
                        key
                    }
                    _ => break,
                };
                match series.written(&("u".to_owned(), key)) {
                    Some(at) => decision = Decision::RepeatAt(key, at),
                    None => break,
                }
            }
            let passed = begin.elapsed();
            advance(Duration::from_secs(every).saturating_sub(passed)).await;
        }
        (created, patched, count)
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_event_again_is_counted_in_the_one_that_is_stored() {
        let mut series = EventSeries::default();
        let Decision::Create(key, message) = record(&mut series, "m") else {
            panic!("it is new");
        };
        assert_eq!(message, "m");
        let key = ("u".to_owned(), key);
        // The event is not stored yet.
        assert_eq!(record(&mut series, "m"), Decision::Counted);
        let due = series.written(&key).unwrap();
        assert_eq!(due, Instant::now() + MIN_WRITE_INTERVAL);
        assert_eq!(record(&mut series, "m"), Decision::Counted);
        assert_eq!(series.repetition(&key).unwrap().count, 3);
        assert_eq!(series.written(&key), None);
        assert_eq!(record(&mut series, "m"), Decision::RepeatAt(key.1, due));
        // A different message, job or time makes a different event.
        assert!(matches!(record(&mut series, "n"), Decision::Create(..)));
        let other = series.record("v", &event("m"), "name", Timestamp::UNIX_EPOCH, false);
        assert!(matches!(other, Decision::Create(..)));
        assert_eq!(series.repetition(&key).unwrap().count, 4);
        series.written(&key);
        advance(REPETITION_WINDOW).await;
        assert!(matches!(record(&mut series, "m"), Decision::Create(..)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_loop_leaves_a_bounded_number_of_events() {
        let (created, patched, _) = crash_loop(3_600, 5, |_| "always the same".to_owned()).await;
        assert!(created == 1 && patched <= 25 + 12, "{created} {patched}");
        let (created, patched, count) = crash_loop(3_600, 5, |n| format!("attempt {n}")).await;
        assert!(
            created <= 11 && patched <= 25 + 12 && count > 0,
            "{created} {patched} {count}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_job_is_reported_whatever_came_before() {
        let mut series = EventSeries::default();
        let mut created = 0;
        for n in 0..100 {
            let mut event = event("m");
            event.reason = format!("Reason{n}");
            let decision = series.record("u", &event, "name", Timestamp::UNIX_EPOCH, false);
            created += u32::from(matches!(decision, Decision::Create(..)));
        }
        assert_eq!(created, 25);
        let end = series.record("u", &event("the end"), "name", Timestamp::UNIX_EPOCH, true);
        assert!(matches!(end, Decision::Create(..)), "{end:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_right_to_patch_each_event_is_new() {
        let mut series = EventSeries::default();
        let Decision::Create(key, _) = record(&mut series, "m") else {
            panic!("it is new");
        };
        series.failed(&("u".to_owned(), key), true);
        for _ in 0..2 {
            assert!(matches!(record(&mut series, "m"), Decision::Create(..)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn old_events_are_forgotten() {
        let mut series = EventSeries::default();
        for n in 0..100 {
            let uid = format!("u{n}");
            if let Decision::Create(key, _) =
                series.record(&uid, &event("m"), "name", Timestamp::UNIX_EPOCH, false)
            {
                series.written(&(uid, key));
            }
        }
        assert_eq!(series.jobs.len(), 100);
        advance(REPETITION_WINDOW + FORGET_INTERVAL).await;
        record(&mut series, "m");
        assert_eq!(series.jobs.len(), 1);
    }
}
