//! The state of a gate, as a function of the time and of what happened.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::spread;

/// The pause before the first attempt. Connections that break at the same moment have all broken by then, so the attempt
/// does not reach the server over the last of them, and refute what is true.
const SETTLE: Duration = Duration::from_millis(50);

/// The pause between two attempts, before the spread of up to a quarter is added. The return of the server is noticed
/// within half a second.
const PAUSE: Duration = Duration::from_millis(360);

/// The time for which the gate must have been open before the pauses start from [`SETTLE`] again.
const STABLE_AFTER: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// A call got no answer. The first attempt decides whether the server is away.
    Suspected,
    /// The server is away.
    Closed,
}

/// The return of a server that was away, which is logged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Return {
    /// The time from the first failure to the answer.
    pub(super) away: Duration,
    /// The number of calls that wait.
    pub(super) calls: usize,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// True while attempts are made.
    is_seeking: bool,
    /// The attempts since the last stable time.
    attempts: u32,
    /// The time of the first failure.
    since: Instant,
    /// The time at which the server was last found again.
    returned: Option<Instant>,
    /// The time of the last answer to a call.
    answered: Instant,
    /// The calls that wait.
    pub(super) waiting: usize,
    /// Makes the pauses of two programs differ.
    key: u64,
}

impl State {
    pub(super) fn new(key: u64) -> Self {
        let now = Instant::now();
        Self {
            phase: Phase::Open,
            is_seeking: false,
            attempts: 0,
            since: now,
            returned: None,
            answered: now,
            waiting: 0,
            key,
        }
    }

    /// Records a call without an answer. Returns true if attempts must start.
    pub(super) fn failed(&mut self) -> bool {
        if self.phase != Phase::Open {
            return false;
        }
        self.phase = Phase::Suspected;
        self.since = Instant::now();
        if self.returned.is_none_or(|at| at.elapsed() >= STABLE_AFTER) {
            self.attempts = 0;
        }
        !std::mem::replace(&mut self.is_seeking, true)
    }

    /// Records the answer to a call of this time. It refutes an earlier suspicion, but opens no closed gate, because
    /// another connection than the broken one may have carried it. The answer to a call that was sent before the
    /// suspicion may be older than the failure.
    pub(super) fn answered(&mut self, sent: Instant) {
        self.answered = Instant::now();
        if self.phase == Phase::Suspected && sent > self.since {
            self.phase = Phase::Open;
        }
    }

    /// Returns true if no call has been answered since `sent`.
    pub(super) fn is_silent_since(&self, sent: Instant) -> bool {
        self.answered <= sent
    }

    /// Returns the pause before the next attempt; none if there must be no more.
    pub(super) fn next_attempt(&mut self) -> Option<Duration> {
        self.is_seeking = self.phase != Phase::Open;
        if !self.is_seeking {
            return None;
        }
        let pause = match self.attempts {
            0 => SETTLE,
            n => spread(PAUSE, (self.key, n)),
        };
        self.attempts = self.attempts.saturating_add(1);
        Some(pause)
    }

    /// Records an attempt without an answer. Returns true if the absence of the server is news.
    pub(super) fn attempt_failed(&mut self) -> bool {
        let is_news = self.phase == Phase::Suspected;
        if is_news {
            self.phase = Phase::Closed;
        }
        is_news
    }

    /// Records the answer to an attempt, which opens the gate. Returns the news if the server was away.
    pub(super) fn attempt_answered(&mut self) -> Option<Return> {
        self.answered = Instant::now();
        let before = std::mem::replace(&mut self.phase, Phase::Open);
        if before == Phase::Closed {
            self.returned = Some(self.answered);
        }
        (before == Phase::Closed).then(|| Return {
            away: self.answered - self.since,
            calls: self.waiting,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Makes attempts that fail for this time, and returns their number.
    async fn attempts(state: &mut State, time: Duration) -> usize {
        let end = Instant::now() + time;
        let mut count = 0;
        while Instant::now() < end {
            sleep(state.next_attempt().unwrap()).await;
            state.attempt_failed();
            count += 1;
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_away_gets_at_most_three_attempts_a_second_and_is_found_within_half_a_second() {
        let mut state = State::new(7);
        assert!(state.failed());
        assert!(!state.failed(), "attempts are made already");
        let first = attempts(&mut state, Duration::from_secs(1)).await;
        assert!((3..=4).contains(&first), "{first}");
        let more = attempts(&mut state, Duration::from_secs(600)).await;
        assert!((1_200..=1_700).contains(&more), "{more}");
        assert!(state.next_attempt() < Some(Duration::from_millis(460)));
    }

    #[tokio::test(start_paused = true)]
    async fn absence_and_return_are_news_once() {
        let mut state = State::new(0);
        state.failed();
        assert_eq!(state.next_attempt(), Some(SETTLE));
        assert!(state.attempt_failed());
        assert!(!state.attempt_failed());
        sleep(Duration::from_secs(3)).await;
        state.waiting = 9;
        let news = Return {
            away: Duration::from_secs(3),
            calls: 9,
        };
        assert_eq!(state.attempt_answered(), Some(news));
        assert_eq!(
            state.attempt_answered(),
            None,
            "an attempt that was answered later"
        );
        assert_eq!(state.next_attempt(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspicion_that_another_call_refutes_is_not_reported() {
        let mut state = State::new(0);
        state.failed();
        assert_eq!(state.attempt_answered(), None);
        assert_eq!(state.phase, Phase::Open);
        assert_eq!(state.next_attempt(), None);
        let before = Instant::now();
        state.failed();
        state.answered(before);
        assert_eq!(state.phase, Phase::Suspected, "an answer of before");
        sleep(Duration::from_millis(1)).await;
        state.answered(Instant::now());
        assert_eq!(state.phase, Phase::Open);
        // The attempt that is still made goes on for the next suspicion.
        assert!(!state.failed());
        assert!(state.attempt_failed());
        state.answered(Instant::now());
        assert_eq!(state.phase, Phase::Closed, "an answer of an older connection");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_and_goes_gets_the_pauses_of_one_absence() {
        let mut state = State::new(0);
        let mut cycles = 0;
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            state.failed();
            sleep(state.next_attempt().unwrap()).await;
            state.attempt_failed();
            sleep(state.next_attempt().unwrap()).await;
            state.attempt_answered();
            assert_eq!(state.next_attempt(), None);
            cycles += 1;
        }
        assert!(cycles <= 90, "{cycles}");
        sleep(STABLE_AFTER).await;
        state.failed();
        assert_eq!(state.next_attempt(), Some(SETTLE));
    }
}
