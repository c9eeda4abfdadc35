//! What many runs come to.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::fault::Site;
use crate::invariants::Violation;
use crate::run::{Outcome, Scenario};

/// The sum of many runs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Runs.
    pub runs: u64,
    /// Jobs that were made.
    pub jobs: u64,
    /// Jobs that ended, or were deleted.
    pub ended: u64,
    /// Calls of operators.
    pub calls: u64,
    /// Virtual seconds.
    pub seconds: u64,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// The first violation of each run that had one, by the run's name.
    pub violations: BTreeMap<String, Violation>,
}

impl Report {
    /// Adds a run.
    pub fn add(&mut self, name: impl fmt::Display, outcome: &Outcome) {
        self.runs += 1;
        self.jobs += outcome.lives.0;
        self.ended += outcome.lives.1;
        self.calls += outcome.calls;
        self.seconds += outcome.seconds;
        for (kind, count) in &outcome.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        if let Some(violation) = outcome.violations.first() {
            self.violations.insert(name.to_string(), violation.clone());
        }
    }

    /// Adds what another thread did.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.jobs += other.jobs;
        self.ended += other.ended;
        self.calls += other.calls;
        self.seconds += other.seconds;
        for (kind, count) in other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        self.violations.extend(other.violations);
    }

    /// The report, for runs that took so long on so many threads.
    pub fn text(&self, took: Duration, threads: u32) -> String {
        let seconds = took.as_secs_f64();
        let rate = self.jobs as f64 / seconds / f64::from(threads);
        let faults: u64 = self.faults.values().sum();
        let days = self.seconds / 86_400;
        let mut text = format!(
            "{} runs in {seconds:.1} s on {threads} thread(s): {} jobs ({} ended), {rate:.0} lives per second and \
             thread, {} calls, {days} days of virtual time\n{faults} faults:\n",
            self.runs, self.jobs, self.ended, self.calls
        );
        for (kind, count) in &self.faults {
            text += &format!("  {count:>10} {kind}\n");
        }
        text += &format!("{} violations\n", self.violations.len());
        for (name, violation) in &self.violations {
            text += &format!("  {name}: {violation}\n");
        }
        text
    }
}

/// A scenario in words.
pub fn describe(scenario: &Scenario) -> String {
    let mut text = format!("{:#?}\n", scenario.settings);
    for job in &scenario.jobs {
        text += &format!("{:?} {}: {}\n", job.kind, job.name, job.object["spec"]);
    }
    for act in &scenario.acts {
        text += &format!("{:>4}.{:03} {:?}\n", act.at / 1_000, act.at % 1_000, act.deed);
    }
    let faults = scenario.faults.iter().flatten();
    let line = |(site, fault): (&Site, _)| format!("{site}: {fault:?}\n");
    text + &faults.map(line).collect::<String>()
}
