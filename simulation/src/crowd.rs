//! Very many jobs in one cluster at once, and operators that die among them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::calm::{Help, settle, stay};
use crate::fault::Fault;
use crate::invariants::{Violation, rest::Rest};
use crate::kubelet::Fate;
use crate::world::{SMALL, World, on_paused_clock, train};

/// How long each call takes before it takes effect, and as long again for its answer, in milliseconds.
const CALL: u64 = 10;

/// How long pods run, in seconds; schedulers ten minutes longer.
const RUN: u64 = 36_000;

/// How long nothing may have changed for a phase to be over, in seconds.
const CALM: u64 = 30;

/// A time in the lives of all jobs.
#[derive(Debug)]
pub struct Phase {
    /// What happened.
    pub name: &'static str,
    /// How long it took by the simulated clock.
    pub time: Duration,
    /// The operators' calls by verb and resource, but for watches.
    pub calls: BTreeMap<String, u64>,
}

impl Phase {
    /// How many such calls there were.
    pub fn count(&self, kind: &str) -> u64 {
        self.calls.get(kind).copied().unwrap_or_default()
    }
}

/// What became of them.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One after the other.
    pub phases: Vec<Phase>,
    /// What must never happen and did.
    pub violations: Vec<Violation>,
}

/// Lets so many jobs of four pods live in one cluster: they are made, and the operator is killed when it has made half
/// of their pods; another makes the rest, and is killed when all run; another knows all of them; they end well, and
/// are deleted. `told` hears of each phase when it is over.
///
/// # Panics
/// If the cluster refuses what a user does.
pub fn live(jobs: u64, told: impl FnMut(&Phase)) -> Outcome {
    on_paused_clock(async {
        let mut crowd = Crowd::new(jobs, told);
        crowd.make_half().await;
        crowd.make_the_rest().await;
        crowd.take_over().await;
        crowd.end().await;
        crowd.delete().await;
        crowd.outcome().await
    })
}

struct Crowd<F> {
    world: World,
    names: Vec<String>,
    /// Half of the pods are made.
    half: Arc<Notify>,
    begun: Instant,
    told: F,
    outcome: Outcome,
}

impl<F: FnMut(&Phase)> Crowd<F> {
    fn new(jobs: u64, told: F) -> Self {
        let world = World::new(|name, _| {
            Fate::Succeeds(if name.contains("scheduler") {
                RUN + 600
            } else {
                RUN
            })
        });
        // All of them at once: services, pods, events, statuses.
        world.network.expect(20 * jobs);
        let half = Arc::new(Notify::new());
        let (mut left, reached) = (2 * jobs, half.clone());
        world.network.rule(move |call| {
            if call.is("create", "pods") {
                left = left.saturating_sub(1);
                if left == 0 {
                    reached.notify_one();
                }
            }
            (call.verb != "watch").then_some(Fault::Slow(CALL, CALL))
        });
        Self {
            world,
            names: (0..jobs).map(|number| format!("job-{number}")).collect(),
            half,
            begun: Instant::now(),
            told,
            outcome: Outcome::default(),
        }
    }

    async fn make_half(&mut self) {
        for name in &self.names {
            self.world.create(train(name, &SMALL)).await;
        }
        self.half.notified().await;
        self.world.kill().await;
        self.over(
            "half of them are made, and the operator is killed",
            self.begun.elapsed(),
        );
    }

    async fn make_the_rest(&mut self) {
        self.world.start();
        let took = self.calm().await;
        self.expect("Created Running");
        self.over("another makes the rest", took);
    }

    async fn take_over(&mut self) {
        self.world.kill().await;
        self.world.start();
        // One for each kind of object.
        while self.world.network.count("watch", "") < 3 {
            tokio::time::sleep(Duration::from_millis(CALL)).await;
        }
        let took = self.begun.elapsed();
        self.calm().await;
        self.over("another one knows them all", took);
    }

    async fn end(&mut self) {
        let first = self.world.history.now() / 1_000;
        self.world.pass(RUN.saturating_sub(first)).await;
        self.begun = Instant::now();
        self.world.pass(600).await;
        let took = self.calm().await;
        self.expect("Created Running=False Succeeded");
        self.over("all end", took);
    }

    async fn delete(&mut self) {
        for name in &self.names {
            self.world.delete(name).await;
        }
        let took = self.calm().await;
        self.over("all are deleted", took);
    }

    /// Waits until nothing has changed for a while; how long it took until the last change.
    async fn calm(&self) -> Duration {
        loop {
            self.world.pass(CALM).await;
            let now = self.world.history.now();
            let since = Duration::from_millis(now - self.world.monitor.last_change());
            if since >= Duration::from_secs(CALM) {
                return self.begun.elapsed().saturating_sub(since);
            }
        }
    }

    /// All jobs have what they ask for, and these conditions.
    fn expect(&mut self, conditions: &str) {
        let at = self.world.history.now();
        let mut broken = |id, what| self.outcome.violations.push(Violation { id, at, what });
        for (id, what) in Rest::of(&self.world.cluster).problems() {
            broken(id, what);
        }
        for name in &self.names {
            let is = self.world.conditions(name);
            if is != conditions {
                broken("I7", format!("{name} is {is}, not {conditions}"));
            }
        }
    }

    fn over(&mut self, name: &'static str, time: Duration) {
        let mut calls = BTreeMap::new();
        for call in self.world.network.take() {
            if call.verb != "watch" {
                *calls.entry(call.kind()).or_default() += 1;
            }
        }
        let phase = Phase { name, time, calls };
        (self.told)(&phase);
        self.outcome.phases.push(phase);
        self.begun = Instant::now();
    }

    async fn outcome(mut self) -> Outcome {
        let world = &mut self.world;
        let mut found = settle(world, Help::None).await;
        found.extend(stay(world, 130).await);
        found.extend(world.monitor.found());
        self.outcome.violations.extend(found);
        self.outcome
    }
}
