//! Watches whose events come late, and some of them twice.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::network::Broken;
use crate::random::Random;

/// How watches lag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// What decides how much.
    pub seed: u64,
    /// The longest delay of an event, in milliseconds.
    pub most: u64,
    /// Of a thousand events so many come twice.
    pub twice: u64,
}

/// The body of a watch that lags. The order of its events stays: one connection has one order.
pub(crate) struct Lagging<B> {
    inner: B,
    random: Random,
    most: u64,
    twice: u64,
    waiting: VecDeque<(Instant, Bytes)>,
    timer: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl<B> Lagging<B> {
    /// Makes the watch of this number lag; some do by much, some by little.
    pub(crate) fn new(inner: B, lag: &Lag, number: u64) -> Self {
        let mut random = Random::about(lag.seed, "watch", number);
        let most = *random.pick(&[0, lag.most / 100, lag.most / 10, lag.most]);
        Self {
            inner,
            random,
            most,
            twice: lag.twice,
            waiting: VecDeque::new(),
            timer: None,
            ended: false,
        }
    }

    fn take(&mut self, line: Bytes) {
        let due = Instant::now() + Duration::from_millis(self.random.between(0, self.most));
        let due = self.waiting.back().map_or(due, |(last, _)| due.max(*last));
        if self.random.chance(self.twice) {
            self.waiting.push_back((due, line.clone()));
        }
        self.waiting.push_back((due, line));
    }
}

impl<B: Body<Data = Bytes, Error = Broken> + Unpin> Body for Lagging<B> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        while !this.ended {
            match Pin::new(&mut this.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(line) = frame.into_data() {
                        this.take(line);
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
