//! The metrics of the jobs that exist now. Each cached job holds a value that counts it until it is dropped, so that a
//! scrape costs no call, and an operator that loses its lease leaves no counts behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};

/// Maximum number of namespaces with series of their own, because each has one for each kind and state.
const MAX_NAMESPACES: usize = 100;

/// The label of the other namespaces. A namespace cannot have this name.
const OTHER_NAMESPACES: &str = "_other";

/// The namespaces with series of their own: the first ones with a job since the start of the process.
#[derive(Debug, Default)]
pub(super) struct Namespaces(Mutex<BTreeSet<String>>);

impl Namespaces {
    /// Returns the label of a namespace.
    pub(super) fn label(&self, namespace: &str) -> String {
        let mut known = self.0.lock();
        if !known.contains(namespace) {
            if known.len() >= MAX_NAMESPACES {
                return OTHER_NAMESPACES.to_owned();
            }
            known.insert(namespace.to_owned());
        }
        namespace.to_owned()
    }
}

/// A cached job in the gauge of its state.
#[derive(Debug)]
pub(crate) struct CountedJob {
    state: Gauge,
    /// The gauge of stalled jobs, if the job is one.
    stalled: Option<Gauge>,
}

impl CountedJob {
    pub(super) fn new(state: Gauge, stalled: Option<Gauge>) -> Self {
        state.inc();
        stalled.as_ref().map(Gauge::inc);
        Self { state, stalled }
    }
}

impl Drop for CountedJob {
    fn drop(&mut self) {
        self.state.dec();
        self.stalled.as_ref().map(Gauge::dec);
    }
}

/// The times since which jobs wait for their first pod, with the number of such jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitTimes(Arc<Mutex<BTreeMap<Timestamp, usize>>>);

impl WaitTimes {
    pub(super) fn add(&self, since: Timestamp) -> WaitingJob {
        *self.0.lock().entry(since).or_default() += 1;
        WaitingJob {
            times: self.clone(),
            since,
        }
    }

    /// Returns the longest wait in seconds; 0 if no job waits.
    fn longest(&self, now: Timestamp) -> f64 {
        let oldest = self.0.lock().first_key_value().map(|(since, _)| *since);
        oldest.map_or(0.0, |since| now.duration_since(since).as_secs_f64().max(0.0))
    }
}

/// A job without pods.
#[derive(Debug)]
pub(crate) struct WaitingJob {
    times: WaitTimes,
    since: Timestamp,
}

impl Drop for WaitingJob {
    fn drop(&mut self) {
        let mut times = self.times.0.lock();
        if let Some(count) = times.get_mut(&self.since) {
            *count -= 1;
            if *count == 0 {
                times.remove(&self.since);
            }
        }
    }
}

/// The longest wait, computed at each scrape.
#[derive(Debug)]
pub(super) struct OldestWait(pub(super) WaitTimes);

impl Collector for OldestWait {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let longest = ConstGauge::new(self.0.longest(Timestamp::now()));
        let encoder = encoder.encode_descriptor(
            "oldest_job_without_pods_seconds",
            "Time for which the oldest active job without pods has waited for them, in seconds; 0 if there is none.",
            None,
            longest.metric_type(),
        )?;
        longest.encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_namespaces_are_counted_together_and_the_first_ones_keep_their_series() {
        let namespaces = Namespaces::default();
        for n in 0..MAX_NAMESPACES {
            assert_eq!(namespaces.label(&format!("team-{n}")), format!("team-{n}"));
        }
        assert_eq!(namespaces.label("late"), "_other");
        assert_eq!(namespaces.label("team-99"), "team-99");
    }

    #[test]
    fn the_longest_wait_is_that_of_the_oldest_job_that_still_waits() {
        let times = WaitTimes::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert!(times.longest(at(100)).abs() < f64::EPSILON);
        let (first, twin, second) = (times.add(at(10)), times.add(at(10)), times.add(at(40)));
        let longest = || times.longest(at(100)).round();
        assert!((longest() - 90.0).abs() < f64::EPSILON);
        drop(first);
        assert!(
            (longest() - 90.0).abs() < f64::EPSILON,
            "another job waits as long"
        );
        drop(twin);
        assert!((longest() - 60.0).abs() < f64::EPSILON);
        drop(second);
        assert!(longest().abs() < f64::EPSILON);
        assert!(times.0.lock().is_empty());
    }
}
