//! Limits the calls in flight for all jobs, and decides which call is next.
//!
//! The limit adapts to the server. A server with two cores completes sixty-four concurrent calls no sooner than eight
//! batches of eight, but each call then takes far longer. The limit is found as TCP Vegas finds its window: it grows
//! while calls take little longer than the fastest recent one, and it shrinks when calls queue in the server.
//!
//! Calls that users wait for go first. Jobs take turns, so a small job does not wait behind the thousand pods of a
//! large one. A call with a large body counts as several.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_follow::{CallError, CallTimeout};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::answers::Answer;

/// The minimum of the limit, and its initial value.
const MIN_LIMIT: f64 = 4.0;

/// Target number of calls that queue in the server, as a multiple of the square root of the limit: about 12 at a
/// limit of 16.
const TARGET_QUEUE: f64 = 3.0;

/// Minimum time for which the latency of the fastest call is remembered; the maximum is twice as long.
const LATENCY_MEMORY: Duration = Duration::from_secs(60);

/// Weight of the earlier calls in a mean when a call is added.
const DECAY: f64 = 0.9;

/// One of this many permits goes to the least urgent call, so that it is not delayed forever.
const LAST_SHARE: u32 = 16;

/// Bytes of a request body for which the weight of a call grows by one.
const BYTES_PER_PERMIT: usize = 8 << 10;

/// A call that takes this many times the mean latency, and at least [`MIN_LOST_CALL_TIMEOUT`], is more likely lost than
/// late. It releases its permit to another call, and still runs until its timeout. The total never exceeds the maximum.
const LOST_CALL_LATENCIES: u32 = 10;

/// The minimum time after which a call counts as lost.
const MIN_LOST_CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The purpose of a call; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// A write of a job's status, because a user may wait for it.
    Status,
    /// A write of a job's children.
    Children,
    Event,
}

/// The limiter: calls in flight, and calls that wait for a permit.
#[derive(Clone)]
pub(super) struct CallLimiter {
    timeout: CallTimeout,
    state: Arc<Mutex<State>>,
}

struct State {
    limit: f64,
    max_limit: f64,
    in_flight: u32,
    /// Total weight of calls that released their permit and still run.
    abandoned: u32,
    /// Waiting calls by urgency, with a fair queue for each.
    waiting: BTreeMap<Urgency, FairQueue>,
    permits_given: u32,
    /// Latencies by urgency, because calls of one urgency are similar.
    times: BTreeMap<Urgency, Times>,
}

/// A fair queue of jobs, each with its calls in order.
#[derive(Default)]
struct FairQueue {
    order: VecDeque<String>,
    calls: BTreeMap<String, VecDeque<Waiting>>,
}

struct Waiting {
    weight: u32,
    permit: oneshot::Sender<Permit>,
}

/// A permit to make a call, released when it is dropped.
#[derive(Default)]
struct Permit {
    /// The limiter that issued the permit; `None` if there is nothing to release.
    limiter: Option<CallLimiter>,
    weight: u32,
    abandoned: bool,
}

impl CallLimiter {
    /// Creates a limiter for at most `max_limit` calls in flight, each with this timeout.
    pub(super) fn new(max_limit: usize, timeout: CallTimeout) -> Self {
        // Values above `u32::MAX` do not occur in practice; a few thousand are the most.
        let max_limit = f64::from(u32::try_from(max_limit.max(1)).unwrap_or(u32::MAX));
        let state = State {
            limit: MIN_LIMIT.min(max_limit),
            max_limit,
            in_flight: 0,
            abandoned: 0,
            waiting: BTreeMap::new(),
            permits_given: 0,
            times: BTreeMap::new(),
        };
        Self {
            timeout,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits for a permit, then makes a call for the job with this UID. The timeout starts with the permit. `bytes`
    /// is the size of the request body; 0 if it is small.
    ///
    /// # Errors
    /// Those of [`CallTimeout::call`].
    pub(super) async fn call<T>(
        &self,
        urgency: Urgency,
        job: &str,
        bytes: usize,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, CallError> {
        let weight = u32::try_from(1 + bytes / BYTES_PER_PERMIT).unwrap_or(u32::MAX);
        let mut permit = self.permit(urgency, job, weight).await;
        let begun = Instant::now();
        let mut request = pin!(self.timeout.call(request));
        let lost_after = MIN_LOST_CALL_TIMEOUT.max(self.latency() * LOST_CALL_LATENCIES);
        let answer = match timeout(lost_after, &mut request).await {
            Ok(answer) => answer,
            Err(_) => {
                permit.abandon();
                request.await
            }
        };
        match &answer {
            Ok(_) => self.lock().record_latency(urgency, begun.elapsed()),
            Err(error) if error.code() == Some(429) || Answer::from(error) == Answer::Unknown => {
                self.lock().overloaded();
            }
            // Other refusals do not depend on the load.
            Err(_) => {}
        }
        answer
    }

    /// Returns the current mean latency: the largest of all urgencies.
    pub(super) fn latency(&self) -> Duration {
        let state = self.lock();
        let means = state.times.values().map(|times| times.mean);
        Duration::from_secs_f64(means.fold(0.0, f64::max))
    }

    async fn permit(&self, urgency: Urgency, job: &str, weight: u32) -> Permit {
        let permit = {
            let mut state = self.lock();
            if state.has_free_permit() && state.waiting.is_empty() {
                state.in_flight += weight;
                return Permit::new(self.clone(), weight);
            }
            let queue = state.waiting.entry(urgency).or_default();
            queue.add(job, weight)
        };
        // The sender is dropped only after it has sent a permit.
        permit.await.unwrap_or_default()
    }

    /// Issues permits to waiting calls while the limit allows.
    fn next(&self) {
        let mut state = self.lock();
        while state.has_free_permit()
            && let Some(Waiting { weight, permit }) = state.pop()
        {
            state.in_flight += weight;
            if let Err(mut permit) = permit.send(Permit::new(self.clone(), weight)) {
                // The waiting call was canceled. The drop must not release the permit, because it would lock again.
                permit.limiter = None;
                state.in_flight -= weight;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Code that holds the lock cannot leave the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    fn new(limiter: CallLimiter, weight: u32) -> Self {
        Self {
            limiter: Some(limiter),
            weight,
            abandoned: false,
        }
    }

    /// Releases the permit to another call while this call still runs.
    fn abandon(&mut self) {
        let Some(limiter) = &self.limiter else { return };
        self.abandoned = true;
        let mut state = limiter.lock();
        state.in_flight -= self.weight;
        state.abandoned += self.weight;
        drop(state);
        limiter.next();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(limiter) = self.limiter.take() else {
            return;
        };
        let mut state = limiter.lock();
        match self.abandoned {
            true => state.abandoned -= self.weight,
            false => state.in_flight -= self.weight,
        }
        drop(state);
        limiter.next();
    }
}

impl FairQueue {
    fn add(&mut self, job: &str, weight: u32) -> oneshot::Receiver<Permit> {
        let (sender, receiver) = oneshot::channel();
        let calls = self.calls.entry(job.to_owned()).or_default();
        if calls.is_empty() {
            self.order.push_back(job.to_owned());
        }
        calls.push_back(Waiting {
            weight,
            permit: sender,
        });
        receiver
    }

    fn pop(&mut self) -> Option<Waiting> {
        let job = self.order.pop_front()?;
        let calls = self.calls.get_mut(&job)?;
        let call = calls.pop_front();
        if calls.is_empty() {
            self.calls.remove(&job);
        } else {
            self.order.push_back(job);
        }
        call
    }
}

impl State {
    /// Returns true if the limit allows one more call, of any weight.
    fn has_free_permit(&self) -> bool {
        let in_flight = f64::from(self.in_flight) + 1.0;
        in_flight <= self.limit && in_flight + f64::from(self.abandoned) <= self.max_limit
    }

    fn pop(&mut self) -> Option<Waiting> {
        self.permits_given = self.permits_given.wrapping_add(1);
        let mut next = match self.permits_given % LAST_SHARE {
            0 => self.waiting.last_entry(),
            _ => self.waiting.first_entry(),
        }?;
        let call = next.get_mut().pop();
        if next.get().order.is_empty() {
            next.remove();
        }
        call
    }

    /// Records the latency of a completed call, and adjusts the limit.
    fn record_latency(&mut self, urgency: Urgency, time: Duration) {
        let all_used = !self.has_free_permit();
        let times = self.times.entry(urgency).or_default();
        times.add(time);
        let queued = self.limit * (1.0 - times.fastest() / times.mean);
        let more = TARGET_QUEUE * self.limit.sqrt() - queued;
        if more < 0.0 || all_used {
            // The whole change is applied after as many responses as there are permits.
            self.limit_to(self.limit + more / self.limit);
        }
    }

    /// Lowers the limit, because the server could not carry out a call.
    fn overloaded(&mut self) {
        self.limit_to(self.limit * DECAY);
    }

    fn limit_to(&mut self, limit: f64) {
        self.limit = limit.clamp(MIN_LIMIT.min(self.max_limit), self.max_limit);
    }
}

/// Recent latencies of calls, in seconds.
struct Times {
    /// Arithmetic mean of the first calls, then exponential.
    mean: f64,
    calls: u32,
    /// The minimum in the current span of [`LATENCY_MEMORY`], and in the previous one.
    fastest: [f64; 2],
    since: Instant,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            mean: 0.0,
            calls: 0,
            fastest: [f64::INFINITY; 2],
            since: Instant::now(),
        }
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        // The clock of a simulation may stand still, so the latency is at least 1 µs.
        let time = time.as_secs_f64().max(1e-6);
        if self.since.elapsed() >= LATENCY_MEMORY {
            self.since = Instant::now();
            self.fastest[1] = mem::replace(&mut self.fastest[0], f64::INFINITY);
        }
        self.fastest[0] = self.fastest[0].min(time);
        // The first call is often slow, so it weighs no more than the next calls.
        self.calls = self.calls.saturating_add(1);
        let weight = f64::from(self.calls).recip().max(1.0 - DECAY);
        self.mean += weight * (time - self.mean);
    }

    fn fastest(&self) -> f64 {
        self.fastest[0].min(self.fastest[1])
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::sync::Semaphore;
    use tokio::time::{sleep, timeout};

    use super::*;

    fn calls(max_limit: usize) -> CallLimiter {
        CallLimiter::new(max_limit, CallTimeout(Duration::from_secs(60)))
    }

    /// Makes all of these calls at once, and returns the jobs in the order of their permits.
    async fn order(calls: &CallLimiter, wanted: &[(Urgency, &str, usize)]) -> String {
        let made = Mutex::new(String::new());
        let call = async |&(urgency, job, bytes): &(Urgency, &str, usize)| {
            let request = async {
                made.lock().unwrap().push_str(job);
                sleep(Duration::from_millis(10)).await;
                Ok(())
            };
            calls.call(urgency, job, bytes, request).await.unwrap();
        };
        join_all(wanted.iter().map(call)).await;
        made.into_inner().unwrap()
    }

    fn all_of(urgency: Urgency, jobs: &str) -> Vec<(Urgency, &str, usize)> {
        jobs.split_inclusive(|_| true)
            .map(|job| (urgency, job, 0))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_take_turns() {
        let wanted = all_of(Urgency::Children, "bbbbbbbbss");
        assert_eq!(order(&calls(1), &wanted).await, "bbsbsbbbbb");
    }

    #[tokio::test(start_paused = true)]
    async fn statuses_go_first_and_events_last_but_never_starve() {
        let mut wanted = all_of(Urgency::Event, "ee");
        wanted.extend(all_of(Urgency::Children, "cccccccccccccccccc"));
        wanted.extend(all_of(Urgency::Status, "ss"));
        let made = order(&calls(1), &wanted).await;
        assert_eq!(made, format!("ess{}e{}", "c".repeat(13), "c".repeat(5)));
    }

    #[test]
    fn a_slow_first_call_weighs_no_more_than_the_next() {
        let calls = calls(4);
        for milliseconds in [1_000, 20, 20, 20, 20, 20, 20, 20, 20] {
            let time = Duration::from_millis(milliseconds);
            calls.lock().record_latency(Urgency::Children, time);
        }
        assert!(calls.latency() < Duration::from_millis(150));
        // Later calls outweigh the first ones.
        for _ in 0..40 {
            calls
                .lock()
                .record_latency(Urgency::Children, Duration::from_secs(1));
        }
        assert!(calls.latency() > Duration::from_millis(900));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_call_counts_as_several() {
        let calls = calls(4);
        let in_flight = async |bytes| {
            let call = || {
                calls.call(Urgency::Children, "a", bytes, async {
                    sleep(Duration::from_secs(1)).await;
                    Ok(())
                })
            };
            let many = join_all((0..8).map(|_| call()));
            tokio::pin!(many);
            let _ = timeout(Duration::from_millis(1), &mut many).await;
            let in_flight = calls.lock().in_flight;
            many.await;
            in_flight
        };
        assert_eq!(in_flight(0).await, 4, "of one");
        assert_eq!(in_flight(4 * BYTES_PER_PERMIT).await, 5, "of five: one of them");
    }

    #[tokio::test(start_paused = true)]
    async fn a_canceled_permit_goes_to_the_next_call() {
        let calls = calls(1);
        let first = calls.permit(Urgency::Children, "a", 1).await;
        let second = calls.permit(Urgency::Children, "b", 1);
        assert!(timeout(Duration::from_secs(1), second).await.is_err());
        let third = calls.permit(Urgency::Children, "c", 1);
        tokio::pin!(third);
        assert!(timeout(Duration::from_secs(1), &mut third).await.is_err());
        drop(first);
        let third = third.await;
        assert_eq!(calls.lock().in_flight, 1);
        drop(third);
        assert_eq!(calls.lock().in_flight, 0);
    }

    /// Returns the limit after a thousand calls to a server that carries out `at_once` calls concurrently, each in 3
    /// ms.
    async fn limit_at(at_once: usize) -> f64 {
        let calls = calls(64);
        let server = Semaphore::new(at_once);
        let call = || {
            calls.call(Urgency::Children, "a", 0, async {
                let _place = server.acquire().await;
                sleep(Duration::from_millis(3)).await;
                Ok(())
            })
        };
        join_all((0..1_000).map(|_| call())).await;
        calls.lock().limit
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_follows_the_capacity_of_the_server() {
        let small = limit_at(2).await;
        assert!((MIN_LIMIT..=16.0).contains(&small), "{small}");
        assert!(limit_at(1_000).await > 60.0, "a large server takes all");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_call_releases_its_permit() {
        let calls = calls(64);
        let lost = |job: &'static str| {
            let calls = calls.clone();
            tokio::spawn(async move {
                let never = std::future::pending::<kube::Result<()>>();
                calls.call(Urgency::Status, job, 0, never).await
            })
        };
        let begun = Instant::now();
        let all: Vec<_> = (0..60).map(|_| lost("a")).collect();
        tokio::task::yield_now().await;
        let answered = calls.call(Urgency::Children, "b", 0, async { Ok(()) }).await;
        assert!(answered.is_ok());
        assert!(begun.elapsed() < Duration::from_secs(16), "{:?}", begun.elapsed());
        assert!(join_all(all).await.into_iter().all(|lost| lost.unwrap().is_err()));
        let state = calls.lock();
        assert_eq!((state.in_flight, state.abandoned), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_server_gets_fewer_calls() {
        let calls = calls(64);
        calls.lock().limit = 64.0;
        let late = || std::future::pending::<kube::Result<()>>();
        let all = join_all((0..64).map(|_| calls.call(Urgency::Children, "a", 0, late())));
        assert!(all.await.iter().all(Result::is_err));
        assert!(calls.lock().limit <= MIN_LIMIT, "{}", calls.lock().limit);
        let refused = Err(kube::Error::Api(Box::default()));
        let _ = calls
            .call(Urgency::Status, "a", 0, async { refused as kube::Result<()> })
            .await;
        assert_eq!(
            calls.latency(),
            Duration::ZERO,
            "only answers tell how long they take"
        );
    }
}
