//! The observed times of the jobs, and the figures derived from them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::work::Jobs;

/// Figures by name. `table.rs` describes them.
pub(crate) type Figures = BTreeMap<String, f64>;

/// A pod that still exists.
pub(crate) struct Known {
    uid: String,
    pub(crate) runs: bool,
}

/// The observed times of one job.
pub(crate) struct JobTimeline {
    pub(crate) jobs: Jobs,
    pub(crate) created: Option<Instant>,
    /// The existing pods by name.
    pub(crate) pods: BTreeMap<String, Known>,
    /// The time at which each pod was first observed, including deleted pods.
    pub(crate) made: Vec<Instant>,
    /// The time at which all its pods ran first.
    pub(crate) all_run: Option<Instant>,
    pub(crate) is_ending: bool,
    pub(crate) killed: Option<Instant>,
    pub(crate) last_pod_ended: Option<Instant>,
    pub(crate) running: Option<Instant>,
    pub(crate) succeeded: Option<Instant>,
}

impl JobTimeline {
    pub(crate) fn new(jobs: Jobs) -> Self {
        Self {
            jobs,
            created: None,
            pods: BTreeMap::new(),
            made: Vec::new(),
            all_run: None,
            is_ending: false,
            killed: None,
            last_pod_ended: None,
            running: None,
            succeeded: None,
        }
    }

    /// Records a pod. Returns true if the pod was known before.
    pub(crate) fn has(&mut self, pod: &str, uid: &str, at: Instant) -> bool {
        if self.pods.get(pod).is_some_and(|known| known.uid == uid) {
            return true;
        }
        let known = Known {
            uid: uid.to_owned(),
            runs: false,
        };
        self.pods.insert(pod.to_owned(), known);
        self.made.push(at);
        false
    }

    /// Returns the pod if it has the same UID.
    pub(crate) fn pod(&mut self, pod: &str, uid: &str) -> Option<&mut Known> {
        self.pods.get_mut(pod).filter(|known| known.uid == uid)
    }

    /// Returns true if all its pods run.
    pub(crate) fn runs(&self) -> bool {
        self.is_made() && self.pods.values().all(|pod| pod.runs)
    }

    /// Returns true if all its pods have been created.
    pub(crate) fn is_made(&self) -> bool {
        self.pods.len() >= self.jobs.pods()
    }

    /// Returns the time from the job's creation to its last pod, before any pod was lost.
    pub(crate) fn making(&self) -> Option<Duration> {
        let last = self.made.get(self.jobs.pods() - 1)?;
        Some(last.saturating_duration_since(self.created?))
    }
}

/// The observed times of all jobs.
pub(crate) struct Timelines {
    begun: Instant,
    pub(crate) jobs: BTreeMap<String, JobTimeline>,
}

impl Timelines {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            jobs: BTreeMap::new(),
        }
    }

    pub(crate) fn timeline(&mut self, job: &str) -> &mut JobTimeline {
        self.jobs
            .get_mut(job)
            .expect("only jobs of the driver's have pods")
    }

    /// Returns true if the condition holds for all jobs.
    pub(crate) fn all(&self, is: impl Fn(&JobTimeline) -> bool) -> bool {
        self.jobs.values().all(is)
    }

    /// Returns the times of a burst.
    pub(crate) fn figures(&self) -> Figures {
        let all = || self.jobs.values();
        let first = all()
            .filter_map(|timeline| timeline.created)
            .min()
            .unwrap_or(self.begun);
        let since = |to: Option<Instant>, from: Option<Instant>| Some(to?.saturating_duration_since(from?));
        let made = all().flat_map(|timeline| {
            let all = timeline.made.iter().take(timeline.jobs.pods());
            all.filter_map(move |at| since(Some(*at), timeline.created))
        });
        let whole = all().filter_map(JobTimeline::making);
        let reported = all().filter_map(|timeline| since(timeline.running, timeline.created));
        let runs = all().filter_map(|timeline| since(timeline.running, timeline.all_run));
        let shown = all().filter(|timeline| timeline.running.is_some()).count();
        let ends = all().filter_map(|timeline| since(timeline.succeeded, timeline.last_pod_ended));
        let anew = all()
            .filter_map(|timeline| since(timeline.made.get(timeline.jobs.pods()).copied(), timeline.killed));
        let last_made = all()
            .filter_map(|timeline| timeline.made.get(timeline.jobs.pods() - 1).copied())
            .max();
        let last_done = all().filter_map(|timeline| timeline.succeeded).max();
        let mut figures = Figures::new();
        spread(&mut figures, "pods", made);
        spread(&mut figures, "making", whole);
        spread(&mut figures, "reported", reported);
        spread(&mut figures, "running", runs);
        spread(&mut figures, "end", ends);
        if all().any(|timeline| timeline.killed.is_some()) {
            spread(&mut figures, "anew", anew);
        }
        let mut put = |name: &str, value: f64| figures.insert(name.to_owned(), value);
        put(
            "running_shown",
            100.0 * shown as f64 / self.jobs.len().max(1) as f64,
        );
        if let Some(last) = last_made {
            let seconds = (last - first).as_secs_f64();
            let pods: usize = all().map(|timeline| timeline.jobs.pods()).sum();
            put("pods_all", seconds);
            put("pods_rate", pods as f64 / seconds);
        }
        if let Some(last) = last_done {
            put("done", (last - first).as_secs_f64());
        }
        figures
    }
}

/// Adds the median and the 99th percentile of times, in seconds.
pub(crate) fn spread(figures: &mut Figures, name: &str, times: impl Iterator<Item = Duration>) {
    let mut times: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    for percent in [50, 99] {
        let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        if let Some(time) = times.get(place) {
            figures.insert(format!("{name}_p{percent}"), *time);
        }
    }
}
