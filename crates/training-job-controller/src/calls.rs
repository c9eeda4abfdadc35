//! Limits the calls in flight for all jobs, and decides which call is next.
//!
//! The limit is fixed, and halved when the server reports that it is overloaded or does not respond. It grows again by
//! one for as many responses as it allows calls.
//!
//! Calls that users wait for go first. Jobs take turns, so a small job does not wait behind the thousand pods of a
//! large one. A call with a large body counts as several.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube_follow::{CallError, CallTimeout, Gate};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::answers::Answer;

/// The minimum of the limit under overload.
const MIN_LIMIT: f64 = 4.0;

/// Weight of the earlier calls in a mean when a call is added.
const DECAY: f64 = 0.9;

/// One of this many permits goes to the least urgent call, so that it is not delayed forever.
const LAST_SHARE: u32 = 16;

/// Bytes of a request body for which the weight of a call grows by one.
const BYTES_PER_PERMIT: usize = 8 << 10;

/// A call that takes this many times the mean latency, and at least [`MIN_LOST_CALL_TIMEOUT`], is more likely lost than
/// late. It releases its permit to another call, and still runs until its timeout.
const LOST_CALL_LATENCIES: u32 = 10;

/// The minimum time after which a call counts as lost.
const MIN_LOST_CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of calls that run, lost ones included, as a multiple of the maximum in flight. A server that
/// answers no call of one job must not stop the others for long.
const MAX_RUNNING_PER_PERMIT: f64 = 4.0;

/// The purpose of a call; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// A write of a job's status, because a user may wait for it.
    Status,
    /// A write of a job's children.
    Children,
    Event,
    /// A read of a replica's output.
    Output,
}

/// The limiter: calls in flight, and calls that wait for a permit.
#[derive(Clone)]
pub(super) struct CallLimiter {
    timeout: CallTimeout,
    gate: Gate,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The current limit; below `max_limit` after an overload.
    limit: f64,
    max_limit: f64,
    in_flight: u32,
    /// Total weight of calls that released their permit and still run.
    abandoned: u32,
    /// Waiting calls by urgency, with a fair queue for each.
    waiting: BTreeMap<Urgency, FairQueue>,
    permits_given: u32,
    /// Latencies by urgency, because calls of one urgency are similar.
    latencies: BTreeMap<Urgency, MeanLatency>,
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
    /// Creates a limiter for at most `max_limit` calls in flight, each with this timeout. Calls are made while the gate is
    /// open.
    pub(super) fn new(max_limit: usize, timeout: CallTimeout, gate: Gate) -> Self {
        // Values above `u32::MAX` do not occur in practice; a few thousand are the most.
        let max_limit = f64::from(u32::try_from(max_limit.max(1)).unwrap_or(u32::MAX));
        let state = State {
            limit: max_limit,
            max_limit,
            in_flight: 0,
            abandoned: 0,
            waiting: BTreeMap::new(),
            permits_given: 0,
            latencies: BTreeMap::new(),
        };
        Self {
            timeout,
            gate,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits for a permit and for the gate, then makes a call for the job with this UID. The timeout starts with the
    /// permit. `bytes` is the size of the request body; 0 if it is small.
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
        let waiting = self.gate.wait();
        let mut permit = self.permit(urgency, job, weight).await;
        let deadline = Instant::now() + self.timeout.0;
        // The calls that wait keep their permits, so that no more than the limit are made when the server is back.
        self.gate.opened(deadline).await?;
        drop(waiting);
        let begun = Instant::now();
        let mut request = pin!(CallTimeout(deadline - begun).call(request));
        let lost_after = MIN_LOST_CALL_TIMEOUT.max(self.latency() * LOST_CALL_LATENCIES);
        let answer = match timeout(lost_after, &mut request).await {
            Ok(answer) => answer,
            Err(_) => {
                permit.abandon();
                request.await
            }
        };
        match &answer {
            // A node sends the response, so its latency and its failure do not measure the API server.
            Ok(_) if urgency == Urgency::Output => {}
            Ok(_) => self.state.lock().completed(urgency, begun.elapsed()),
            // A server that is away is not overloaded.
            Err(CallError::Away) => {}
            Err(CallError::Timeout(_)) if !self.gate.is_open() => return Err(CallError::Away),
            Err(error)
                if error.code() == Some(429)
                    || urgency != Urgency::Output && Answer::from(error) == Answer::Unknown =>
            {
                self.state.lock().overloaded();
            }
            // Other refusals do not depend on the load.
            Err(_) => {}
        }
        answer
    }

    /// Returns the current mean latency: the largest of all urgencies.
    pub(super) fn latency(&self) -> Duration {
        let state = self.state.lock();
        let means = state.latencies.values().map(|latency| latency.seconds);
        Duration::from_secs_f64(means.fold(0.0, f64::max))
    }

    async fn permit(&self, urgency: Urgency, job: &str, weight: u32) -> Permit {
        let permit = {
            let mut state = self.state.lock();
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
        let mut state = self.state.lock();
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
        let mut state = limiter.state.lock();
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
        let mut state = limiter.state.lock();
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
        let running = in_flight + f64::from(self.abandoned);
        in_flight <= self.limit && running <= self.max_limit * MAX_RUNNING_PER_PERMIT
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

    /// Records the latency of a completed call, and raises the limit if it was lowered.
    fn completed(&mut self, urgency: Urgency, time: Duration) {
        self.latencies.entry(urgency).or_default().add(time);
        self.limit = (self.limit + self.limit.recip()).min(self.max_limit);
    }

    /// Lowers the limit, because the server could not carry out a call.
    fn overloaded(&mut self) {
        self.limit = (self.limit / 2.0).max(MIN_LIMIT.min(self.max_limit));
    }
}

/// The mean latency of calls: arithmetic for the first calls, then exponential.
#[derive(Default)]
struct MeanLatency {
    seconds: f64,
    calls: u32,
}

impl MeanLatency {
    fn add(&mut self, time: Duration) {
        // The first call is often slow, so it weighs no more than the next calls.
        self.calls = self.calls.saturating_add(1);
        let weight = f64::from(self.calls).recip().max(1.0 - DECAY);
        self.seconds += weight * (time.as_secs_f64() - self.seconds);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::{sleep, timeout};

    use super::*;

    fn calls(max_limit: usize) -> CallLimiter {
        CallLimiter::new(max_limit, CallTimeout(Duration::from_secs(60)), Gate::default())
    }

    /// Makes all of these calls at once, and returns the jobs in the order of their permits.
    async fn order(calls: &CallLimiter, wanted: &[(Urgency, &str, usize)]) -> String {
        let made = Mutex::new(String::new());
        let call = async |&(urgency, job, bytes): &(Urgency, &str, usize)| {
            let request = async {
                made.lock().push_str(job);
                sleep(Duration::from_millis(10)).await;
                Ok(())
            };
            calls.call(urgency, job, bytes, request).await.unwrap();
        };
        join_all(wanted.iter().map(call)).await;
        made.into_inner()
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
            calls.state.lock().completed(Urgency::Children, time);
        }
        assert!(calls.latency() < Duration::from_millis(150));
        // Later calls outweigh the first ones.
        for _ in 0..40 {
            calls
                .state
                .lock()
                .completed(Urgency::Children, Duration::from_secs(1));
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
            let in_flight = calls.state.lock().in_flight;
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
        assert_eq!(calls.state.lock().in_flight, 1);
        drop(third);
        assert_eq!(calls.state.lock().in_flight, 0);
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
        let state = calls.state.lock();
        assert_eq!((state.in_flight, state.abandoned), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_overloaded_server_gets_fewer_calls_until_it_responds_again() {
        let calls = calls(64);
        let late = || std::future::pending::<kube::Result<()>>();
        let call = |request| calls.call(Urgency::Children, "a", 0, request);
        assert!(call(late()).await.is_err());
        assert_eq!(calls.state.lock().limit, 32.0);
        let all = join_all((0..64).map(|_| call(late())));
        assert!(all.await.iter().all(Result::is_err));
        assert_eq!(calls.state.lock().limit, MIN_LIMIT);
        assert_eq!(calls.latency(), Duration::ZERO, "only responses have a latency");
        for _ in 0..3_000 {
            let answered = calls.call(Urgency::Children, "a", 0, async { Ok(()) }).await;
            answered.unwrap();
        }
        assert_eq!(calls.state.lock().limit, 64.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_for_another_reason_leaves_the_limit() {
        let calls = calls(64);
        let forbidden = kube::core::Status {
            code: 403,
            ..kube::core::Status::default()
        };
        let refused = Err(kube::Error::Api(forbidden.boxed()));
        let answered = calls.call(Urgency::Status, "a", 0, async { refused as kube::Result<()> });
        assert!(answered.await.is_err());
        assert_eq!(calls.state.lock().limit, 64.0);
    }
}
