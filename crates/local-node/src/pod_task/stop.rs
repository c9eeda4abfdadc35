//! Stops the containers of a pod: first with SIGTERM, after the grace period with SIGKILL.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use super::PodTask;
use crate::kill::signal_group;
use crate::status::StopCause;

/// The grace period in seconds of a pod that does not set one.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// The ordered end of the pod's processes.
pub(super) struct Stop {
    pub(super) kill_at: Instant,
    pub(super) killed: bool,
    pub(super) cause: StopCause,
}

impl PodTask {
    /// Returns the grace period: `seconds` if given, or else the pod's own, at most the configured cap.
    pub(super) fn grace(&self, seconds: Option<i64>) -> Duration {
        let spec = self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = seconds.or(spec).unwrap_or(DEFAULT_GRACE_SECONDS);
        self.capped(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    pub(super) fn capped(&self, grace: Duration) -> Duration {
        self.agent.config.grace_cap.map_or(grace, |cap| cap.min(grace))
    }

    /// Ends the processes. A second order may shorten the time of the first, but never lengthens it.
    pub(super) fn order_stop(&mut self, grace: Duration, cause: StopCause) {
        let now = Instant::now();
        let kill_at = now + grace.min(Duration::from_secs(86_400));
        match &mut self.stop {
            Some(stop) => stop.kill_at = stop.kill_at.min(kill_at),
            None => {
                self.stop = Some(Stop {
                    kill_at,
                    killed: false,
                    cause,
                });
                self.signal_all(Signal::TERM);
            }
        }
        self.check_timers();
    }

    pub(super) fn signal_all(&self, signal: Signal) {
        for group in self.groups.values() {
            signal_group(*group, signal);
        }
    }

    /// Sends SIGTERM to the sidecars, because the other containers have ended.
    pub(super) fn stop_sidecars(&mut self, sidecars: &[usize]) {
        if sidecars.is_empty() || self.sidecars_end.is_some() {
            return;
        }
        for group in sidecars.iter().filter_map(|at| self.groups.get(at)) {
            signal_group(*group, Signal::TERM);
        }
        self.sidecars_end = Some(Instant::now() + self.grace(None));
    }

    /// Handles the timers that are due: the pod's deadline, the end of a grace period.
    pub(super) fn check_timers(&mut self) {
        let now = Instant::now();
        if self.stop.is_none() && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.order_stop(self.grace(None), StopCause::Deadline);
        }
        if let Some(stop) = self
            .stop
            .as_mut()
            .filter(|stop| !stop.killed && stop.kill_at <= now)
        {
            stop.killed = true;
            self.signal_all(Signal::KILL);
        }
        if self.sidecars_end.is_some_and(|end| end <= now) {
            self.sidecars_end = None;
            self.signal_all(Signal::KILL);
        }
    }
}
