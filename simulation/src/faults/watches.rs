//! Faults of watches: late events, duplicate events, and watches that end after some events.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::call::CallError;
use crate::random::Random;

/// The delays of watch events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchDelay {
    /// The seed of the delays.
    pub seed: u64,
    /// The longest delay of an event, in milliseconds.
    pub longest: u64,
    /// The number of events that are sent twice, per thousand.
    pub duplicates: u64,
}

/// The body of a watch whose events are delayed. The events keep their order, as they do on one connection.
pub(crate) struct DelayedWatch<B> {
    inner: B,
    random: Random,
    longest: u64,
    duplicates: u64,
    waiting: VecDeque<(Instant, Bytes)>,
    timer: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl<B> DelayedWatch<B> {
    /// Delays the watch of this number. The maximum delay differs from watch to watch.
    pub(crate) fn new(inner: B, delay: &WatchDelay, number: u64) -> Self {
        let mut random = Random::about(delay.seed, "watch", number);
        let longest = *random.pick(&[0, delay.longest / 100, delay.longest / 10, delay.longest]);
        Self {
            inner,
            random,
            longest,
            duplicates: delay.duplicates,
            waiting: VecDeque::new(),
            timer: None,
            ended: false,
        }
    }

    fn enqueue(&mut self, line: Bytes) {
        let due = Instant::now() + Duration::from_millis(self.random.between(0, self.longest));
        let due = self.waiting.back().map_or(due, |(last, _)| due.max(*last));
        if self.random.chance(self.duplicates) {
            self.waiting.push_back((due, line.clone()));
        }
        self.waiting.push_back((due, line));
    }
}

impl<B: Body<Data = Bytes, Error = CallError> + Unpin> Body for DelayedWatch<B> {
    type Data = Bytes;
    type Error = CallError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CallError>>> {
        let this = &mut *self;
        while !this.ended {
            match Pin::new(&mut this.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(line) = frame.into_data() {
                        this.enqueue(line);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => this.ended = true,
                Poll::Pending => break,
            }
        }
        let Some((due, _)) = this.waiting.front() else {
            return if this.ended {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        };
        let due = *due;
        if Instant::now() < due {
            let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            timer.as_mut().reset(due);
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        let line = this.waiting.pop_front().map(|(_, line)| line);
        Poll::Ready(line.map(|line| Ok(Frame::data(line))))
    }
}

/// Ends watches, as a server under load ends those of readers that were slow for a moment. Clones share the same
/// state.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchEnds {
    /// The number of events after which each watch ends, or 0 for no limit.
    after: Arc<AtomicU64>,
    /// The number of watches that have ended this way.
    ended: Arc<AtomicU64>,
}

impl WatchEnds {
    /// From now on each watch ends after this many more events, or is unlimited if `events` is `None`.
    pub(crate) fn end_after(&self, events: Option<u64>) {
        self.after.store(events.unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns the number of watches that were ended this way.
    pub(crate) fn count(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

/// The body of a watch that [`WatchEnds`] may end. Each frame is an event.
pub(crate) struct EndingWatch<B> {
    inner: B,
    ends: WatchEnds,
    told: u64,
}

impl<B> EndingWatch<B> {
    pub(crate) fn new(inner: B, ends: WatchEnds) -> Self {
        Self { inner, ends, told: 0 }
    }
}

impl<B: Body<Data = Bytes, Error = CallError> + Unpin> Body for EndingWatch<B> {
    type Data = Bytes;
    type Error = CallError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CallError>>> {
        let after = self.ends.after.load(Ordering::Relaxed);
        if after == 0 {
            self.told = 0;
        } else if self.told >= after {
            self.ends.ended.fetch_add(1, Ordering::Relaxed);
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        if let Poll::Ready(Some(Ok(_))) = polled {
            self.told += 1;
        }
        polled
    }
}
