//! Very many jobs in one cluster at once, and operators that are killed meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::faults::CallFault;
use crate::faults::PodFate;
use crate::invariants::Violation;
use crate::invariants::at_rest::SettledCluster;
use crate::settle::{Blockers, check_idle, wait_until_settled};
use crate::simulation::{SMALL, Simulation, on_paused_clock, train};

/// How long each call takes to arrive, and its answer again, in milliseconds.
const CALL: u64 = 10;

/// How long pods run, in seconds. Schedulers run ten minutes longer.
const RUN: u64 = 36_000;

/// A phase is over when nothing has changed for so many seconds.
const QUIET: u64 = 30;

/// A phase of the lives of all jobs.
#[derive(Debug)]
pub struct Phase {
    /// What happened.
    pub name: &'static str,
    /// How long it took on the simulated clock.
    pub time: Duration,
    /// The operators' calls but watches, by verb and resource.
    pub calls: BTreeMap<String, u64>,
}

impl Phase {
    /// How many calls with this verb and resource there were, such as `create pods`.
    pub fn count(&self, calls: &str) -> u64 {
        self.calls.get(calls).copied().unwrap_or_default()
    }
}

/// What became of a crowd.
#[derive(Debug, Default)]
pub struct CrowdSummary {
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The violations of invariants.
    pub violations: Vec<Violation>,
}

/// Creates so many jobs of four pods in one cluster. The operator is killed when it has created half of the pods; the
/// next creates the rest, and is killed when all run; the third sees them succeed and be deleted. `on_phase` is called
/// when a phase is over.
///
/// # Panics
/// If the cluster refuses what a user does.
pub fn run(jobs: u64, on_phase: impl FnMut(&Phase)) -> CrowdSummary {
    on_paused_clock(async {
        let mut crowd = Crowd::new(jobs, on_phase);
        crowd.create_half().await;
        crowd.create_rest().await;
        crowd.take_over().await;
        crowd.succeed().await;
        crowd.delete().await;
        crowd.summarize().await
    })
}

struct Crowd<F> {
    sim: Simulation,
    names: Vec<String>,
    /// Notified when half of the pods are created.
    half: Arc<Notify>,
    begun: Instant,
    on_phase: F,
    summary: CrowdSummary,
}

impl<F: FnMut(&Phase)> Crowd<F> {
    fn new(jobs: u64, on_phase: F) -> Self {
        let sim = Simulation::new(|name, _| {
            PodFate::Succeeds(if name.contains("scheduler") {
                RUN + 600
            } else {
                RUN
            })
        });
        // All jobs get their services, pods, events and statuses at once.
        sim.network.allow_calls(20 * jobs);
        let half = Arc::new(Notify::new());
        let (mut left, reached) = (2 * jobs, half.clone());
        sim.network.add_rule(move |call| {
            if call.is("create", "pods") {
                left = left.saturating_sub(1);
                if left == 0 {
                    reached.notify_one();
                }
            }
            (call.verb != "watch").then_some(CallFault::Slow(CALL, CALL))
        });
        Self {
            sim,
            names: (0..jobs).map(|number| format!("job-{number}")).collect(),
            half,
            begun: Instant::now(),
            on_phase,
            summary: CrowdSummary::default(),
        }
    }

    async fn create_half(&mut self) {
        for name in &self.names {
            self.sim.create(train(name, &SMALL)).await;
        }
        self.half.notified().await;
        self.sim.kill().await;
        self.end_phase(
            "half of the pods are created, and the operator is killed",
            self.begun.elapsed(),
        );
    }

    async fn create_rest(&mut self) {
        self.sim.start();
        let took = self.wait_until_quiet().await;
        self.check_jobs("Created Running");
        self.end_phase("the next operator creates the rest", took);
    }

    async fn take_over(&mut self) {
        self.sim.kill().await;
        self.sim.start();
        // One for each of jobs, pods, services and ConfigMaps.
        while self.sim.network.count("watch", "") < 4 {
            tokio::time::sleep(Duration::from_millis(CALL)).await;
        }
        let took = self.begun.elapsed();
        self.wait_until_quiet().await;
        self.end_phase("the next operator lists and watches all of them", took);
    }

    async fn succeed(&mut self) {
        let first = self.sim.history.now() / 1_000;
        self.sim.advance(RUN.saturating_sub(first)).await;
        self.begun = Instant::now();
        self.sim.advance(600).await;
        let took = self.wait_until_quiet().await;
        self.check_jobs("Created Running=False Succeeded");
        self.end_phase("all jobs succeed", took);
    }

    async fn delete(&mut self) {
        for name in &self.names {
            self.sim.delete(name).await;
        }
        let took = self.wait_until_quiet().await;
        self.end_phase("all jobs are deleted", took);
    }

    /// Waits until nothing has changed for a while, and returns how long it took until the last change.
    async fn wait_until_quiet(&self) -> Duration {
        loop {
            self.sim.advance(QUIET).await;
            let now = self.sim.history.now();
            let since = Duration::from_millis(now - self.sim.monitor.last_change());
            if since >= Duration::from_secs(QUIET) {
                return self.begun.elapsed().saturating_sub(since);
            }
        }
    }

    /// Checks that all jobs have what they ask for, and these conditions.
    fn check_jobs(&mut self, conditions: &str) {
        let at = self.sim.history.now();
        let mut violated = |id, what| self.summary.violations.push(Violation { id, at, what });
        for (id, what) in SettledCluster::read(&self.sim.cluster).problems() {
            violated(id, what);
        }
        for name in &self.names {
            let is = self.sim.conditions(name);
            if is != conditions {
                violated("I7", format!("{name} is {is}, not {conditions}"));
            }
        }
    }

    fn end_phase(&mut self, name: &'static str, time: Duration) {
        let mut calls = BTreeMap::new();
        for call in self.sim.network.take_calls() {
            if call.verb != "watch" {
                *calls.entry(call.verb_and_resource()).or_default() += 1;
            }
        }
        let phase = Phase { name, time, calls };
        (self.on_phase)(&phase);
        self.summary.phases.push(phase);
        self.begun = Instant::now();
    }

    async fn summarize(mut self) -> CrowdSummary {
        let sim = &mut self.sim;
        let mut found = wait_until_settled(sim, Blockers::Keep).await;
        found.extend(check_idle(sim, 130).await);
        found.extend(sim.monitor.violations());
        self.summary.violations.extend(found);
        self.summary
    }
}
