//! Runs very many jobs in one cluster at once, or one job with very many pods, and kills operators in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::faults::CallFault;
use crate::faults::PodFate;
use crate::invariants::at_rest::SettledCluster;
use crate::invariants::{AllowedStaleness, Violation};
use crate::modes::settle::{Blockers, check_idle, wait_until_settled};
use crate::simulation::{Setup, Simulation, on_paused_clock, train};

/// The latency of each call and of its response, in milliseconds each.
const CALL_LATENCY_MILLIS: u64 = 10;

/// The run time of pods, in seconds. Schedulers run ten minutes longer.
const POD_RUN_SECONDS: u64 = 36_000;

/// The number of seconds without changes that ends a phase.
const QUIET_SECONDS: u64 = 30;

/// The maximum number of calls in flight when an operator is killed. The next operator repeats these calls.
const MAX_CALLS_IN_FLIGHT: u64 = 16;

/// The number of objects in a page of a list.
const OBJECTS_IN_A_PAGE: u64 = 500;

/// The number of jobs, and the number of pods of each: a scheduler, a server, and workers for the rest.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The number of jobs, at least 1.
    pub jobs: u64,
    /// The number of pods of each job, at least 4.
    pub pods: u32,
}

impl Size {
    fn all_pods(self) -> u64 {
        self.jobs * u64::from(self.pods)
    }
}

/// A phase of the lives of all jobs.
#[derive(Debug)]
pub struct Phase {
    /// A description of the phase.
    pub name: &'static str,
    /// The duration on the simulated clock.
    pub time: Duration,
    /// The operators' calls except watches, by verb and resource.
    pub calls: BTreeMap<String, u64>,
}

impl Phase {
    /// Returns the number of calls with this verb and resource, such as `create pods`.
    pub fn count(&self, calls: &str) -> u64 {
        self.calls.get(calls).copied().unwrap_or_default()
    }
}

/// The result of a crowd run.
#[derive(Debug, Default)]
pub struct CrowdSummary {
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// The violations of invariants.
    pub violations: Vec<Violation>,
}

impl CrowdSummary {
    /// Returns the kinds of calls that exceed their limit. Each child may be created once, plus the calls in flight
    /// when an operator was killed. A job may have a handful of events, and a few status writes more while very many
    /// pods change. Each operator lists once.
    fn costs_too_much(&self, size: Size) -> Vec<String> {
        let pages = |objects: u64| 3 * (objects + MAX_CALLS_IN_FLIGHT).div_ceil(OBJECTS_IN_A_PAGE);
        let most = [
            ("create pods", size.all_pods() + MAX_CALLS_IN_FLIGHT),
            ("create services", size.all_pods() + MAX_CALLS_IN_FLIGHT),
            // The one with a cluster IP, at the end.
            ("delete services", size.jobs),
            ("create events", 8 * size.jobs),
            ("patch mxjobs/status", 6 * size.jobs + size.all_pods() / 100),
            ("list configmaps", 3),
            ("list mxjobs", pages(size.jobs)),
            ("list pods", pages(size.all_pods())),
            ("list services", pages(size.all_pods())),
        ];
        let mut seen = BTreeMap::<&str, u64>::new();
        for (calls, count) in self.phases.iter().flat_map(|phase| &phase.calls) {
            *seen.entry(calls).or_default() += count;
        }
        let most = BTreeMap::from(most);
        let allowed = |calls: &str| most.get(calls).copied().unwrap_or_default();
        seen.retain(|calls, count| *count > allowed(calls));
        let over = seen.into_iter();
        over.map(|(calls, count)| format!("{count} {calls}, and not {} at most", allowed(calls)))
            .collect()
    }
}

/// Creates these jobs in one cluster. If `watch_ends` is set, each watch ends after this many events. The operator is
/// killed when it has created half of the pods. The next operator creates the rest, and is killed when all pods run.
/// The third operator observes them succeed and be deleted. `on_phase` is called after each phase. Exceeding the
/// limits on calls is a violation as well.
///
/// # Panics
/// Panics if the cluster rejects a user's call.
pub fn run(size: Size, watch_ends: Option<u64>, on_phase: impl FnMut(&Phase)) -> CrowdSummary {
    on_paused_clock(async {
        let mut crowd = Crowd::new(size, on_phase);
        crowd.sim.network.end_watches(watch_ends);
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
    size: Size,
    names: Vec<String>,
    /// Notified when half of the pods are created.
    half: Arc<Notify>,
    begun: Instant,
    on_phase: F,
    summary: CrowdSummary,
}

impl<F: FnMut(&Phase)> Crowd<F> {
    fn new(size: Size, on_phase: F) -> Self {
        let setup = Setup::mxjobs(|name, _| {
            PodFate::Succeeds(if name.contains("scheduler") {
                POD_RUN_SECONDS + 600
            } else {
                POD_RUN_SECONDS
            })
        });
        // Reconciles of thousands of jobs queue behind each other, while watches do not wait.
        let staleness = AllowedStaleness {
            of_others: 30_000,
            ..setup.staleness
        };
        let mut sim = Simulation::with_setup(Setup { staleness, ..setup });
        sim.start();
        // All jobs get their services, pods, events and statuses at once.
        sim.network.allow_calls(5 * size.all_pods());
        let half = Arc::new(Notify::new());
        let (mut left, reached) = (size.all_pods() / 2, half.clone());
        sim.network.add_rule(move |call| {
            if call.is("create", "pods") {
                left = left.saturating_sub(1);
                if left == 0 {
                    reached.notify_one();
                }
            }
            (call.verb != "watch").then_some(CallFault::Slow(CALL_LATENCY_MILLIS, CALL_LATENCY_MILLIS))
        });
        Self {
            sim,
            size,
            names: (0..size.jobs).map(|number| format!("job-{number}")).collect(),
            half,
            begun: Instant::now(),
            on_phase,
            summary: CrowdSummary::default(),
        }
    }

    async fn create_half(&mut self) {
        let workers = i32::try_from(self.size.pods).unwrap_or(i32::MAX) - 2;
        let roles = [("Scheduler", 1), ("Server", 1), ("Worker", workers)];
        for name in &self.names {
            self.sim.create(train(name, &roles)).await;
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
        // One watch each for jobs, pods, services and ConfigMaps.
        while self.sim.network.count("watch", "") < 4 {
            tokio::time::sleep(Duration::from_millis(CALL_LATENCY_MILLIS)).await;
        }
        let took = self.begun.elapsed();
        self.wait_until_quiet().await;
        self.end_phase("the next operator lists and watches all of them", took);
    }

    async fn succeed(&mut self) {
        let first = self.sim.history.now() / 1_000;
        self.sim.advance(POD_RUN_SECONDS.saturating_sub(first)).await;
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

    /// Waits until nothing has changed for `QUIET_SECONDS` seconds. Returns the time until the last change.
    async fn wait_until_quiet(&self) -> Duration {
        loop {
            self.sim.advance(QUIET_SECONDS).await;
            let now = self.sim.history.now();
            let since = Duration::from_millis(now - self.sim.monitor.last_change());
            if since >= Duration::from_secs(QUIET_SECONDS) {
                return self.begun.elapsed().saturating_sub(since);
            }
        }
    }

    /// Checks that all jobs have the children of their specs, and these conditions.
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
        let at = sim.history.now();
        let costs = self.summary.costs_too_much(self.size);
        found.extend(costs.into_iter().map(|what| Violation { id: "I15", at, what }));
        self.summary.violations.extend(found);
        self.summary
    }
}
