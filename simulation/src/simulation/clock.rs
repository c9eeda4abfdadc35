//! The clock of the cluster and of operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use tokio::time::Instant;
use training_job_controller::Clock;

use crate::world::START_SECOND;

/// A clock that follows Tokio's clock, ahead by an adjustable number of seconds.
#[derive(Clone)]
pub(super) struct SimulatedClock {
    pub(super) start: Instant,
    /// The number of seconds that the clock is ahead.
    pub(super) ahead: Arc<AtomicI64>,
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let second = START_SECOND + self.ahead.load(Ordering::Relaxed);
        Timestamp::from_second(second).unwrap_or_default() + self.start.elapsed()
    }
}
