//! Sums up the results of many runs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::faults::CallSite;
use crate::invariants::Violation;
use crate::modes::run::RunSummary;
use crate::scenario::Scenario;

/// The summed results of many runs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of runs.
    pub runs: u64,
    /// The number of created jobs.
    pub jobs: u64,
    /// The number of jobs that finished or were deleted.
    pub finished_jobs: u64,
    /// The number of calls of operators.
    pub calls: u64,
    /// The simulated time in seconds.
    pub seconds: u64,
    /// The number of faults of calls, by label.
    pub faults: BTreeMap<String, u64>,
    /// The first violation of each run with violations, by the run's name.
    pub violations: BTreeMap<String, Violation>,
}

impl Report {
    /// Adds a run.
    pub fn add(&mut self, name: impl fmt::Display, summary: &RunSummary) {
        self.runs += 1;
        self.jobs += summary.jobs;
        self.finished_jobs += summary.finished_jobs;
        self.calls += summary.calls;
        self.seconds += summary.seconds;
        for (label, count) in &summary.fault_counts {
            *self.faults.entry(label.clone()).or_default() += count;
        }
        if let Some(violation) = summary.violations.first() {
            self.violations.insert(name.to_string(), violation.clone());
        }
    }

    /// Adds the report of another thread.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.jobs += other.jobs;
        self.finished_jobs += other.finished_jobs;
        self.calls += other.calls;
        self.seconds += other.seconds;
        for (label, count) in other.faults {
            *self.faults.entry(label).or_default() += count;
        }
        self.violations.extend(other.violations);
    }

    /// Returns the report as text. `took` is the duration of the runs, on this many threads.
    pub fn text(&self, took: Duration, threads: u32) -> String {
        let seconds = took.as_secs_f64();
        let rate = self.jobs as f64 / seconds / f64::from(threads);
        let faults: u64 = self.faults.values().sum();
        let days = self.seconds / 86_400;
        let mut text = format!(
            "{} runs in {seconds:.1} s on {threads} thread(s): {} jobs ({} finished), {rate:.0} per second and \
             thread, {} calls, {days} simulated days\n{faults} faults:\n",
            self.runs, self.jobs, self.finished_jobs, self.calls
        );
        for (label, count) in &self.faults {
            text += &format!("  {count:>10} {label}\n");
        }
        text += &format!("{} violations\n", self.violations.len());
        for (name, violation) in &self.violations {
            text += &format!("  {name}: {violation}\n");
        }
        text
    }
}

/// Returns a scenario as text: its configuration, jobs, interventions and faults.
pub fn describe(scenario: &Scenario) -> String {
    let mut text = format!("{:#?}\n", scenario.config);
    for job in &scenario.jobs {
        text += &format!("{:?} {}: {}\n", job.job_type, job.name, job.object["spec"]);
    }
    for scheduled in &scenario.interventions {
        let (seconds, millis) = (scheduled.at / 1_000, scheduled.at % 1_000);
        text += &format!("{seconds:>4}.{millis:03} {}\n", scheduled.intervention);
    }
    let faults = scenario.call_faults.iter().flatten();
    let line = |(site, fault): (&CallSite, _)| format!("{site}: {fault:?}\n");
    text + &faults.map(line).collect::<String>()
}
