//! The invariants: what must hold in every cluster with this operator, whatever goes wrong.
//!
//! * `changes`: those that [`Monitor`] checks at each change, as it is stored.
//! * `policies`: one of these, about failure and success policies.
//! * `gangs`: one about jobs that a gang scheduler binds.
//! * `queue`: one about jobs that a queue admits and evicts.
//! * `news`: what is stored reaches operators in time, checked at each watch that begins.
//! * [`at_rest`]: those of a cluster that has settled.
//! * Those about calls are in `run.rs` and `settle.rs`, and those about what a fault may cost in `exhaustive.rs`.
//!
//! To add one: write a function and add it to `changes::ALL`, or to `SettledCluster::problems`; add a line to
//! docs/reliability.md, and a test in which it is violated to `tests/invariants/`.

pub mod at_rest;
mod changes;
mod gangs;
mod news;
mod policies;
mod queue;
mod timeline;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_memory::{Change, Cluster, View};

use crate::call::CurrentCall;
use crate::history::History;
use crate::network::Network;

use news::News;
use timeline::Timeline;

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its number, as in docs/reliability.md.
    pub id: &'static str,
    /// When, in milliseconds since the beginning.
    pub at: u64,
    /// What was seen.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, millis) = (self.at / 1_000, self.at % 1_000);
        write!(f, "{} at {seconds}.{millis:03} s: {}", self.id, self.what)
    }
}

/// How old the state may be that an operator acts on, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedStaleness {
    /// Of what others did: watches take their time, and calls have time-outs.
    pub of_others: u64,
    /// Of what operators themselves did: 0, unless there are several or lists may show older states.
    pub of_own: u64,
}

/// A change, as the invariants see it. The timeline does not have it yet.
pub(crate) struct CheckedChange<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) change: &'a Change,
    /// The operator's call that made the change.
    pub(crate) call: Option<&'a CurrentCall>,
    pub(crate) now: u64,
    pub(crate) timeline: &'a Timeline,
    pub(crate) staleness: AllowedStaleness,
}

/// An invariant about changes. Returns what is wrong with this one.
pub(crate) type Check = fn(&CheckedChange<'_>) -> Option<String>;

/// Checks the invariants at every change of a cluster.
#[derive(Clone)]
pub struct Monitor {
    state: Arc<Mutex<MonitorState>>,
}

struct MonitorState {
    timeline: Timeline,
    news: News,
    violations: Vec<Violation>,
    last_change: u64,
}

impl Monitor {
    /// Checks every change from now on.
    pub fn attach(
        cluster: &Cluster,
        network: &Network,
        history: &History,
        staleness: AllowedStaleness,
    ) -> Self {
        let state = Arc::new(Mutex::new(MonitorState {
            timeline: Timeline::default(),
            news: News::default(),
            violations: Vec::new(),
            last_change: 0,
        }));
        let monitor = Self { state };
        let (listening, clock) = (monitor.clone(), history.clone());
        network.listen(move |call, fault| {
            let (now, mut state) = (clock.now(), listening.state());
            let found = state.news.check(call, fault, now, staleness);
            let violation = |what| Violation {
                id: "I18",
                at: now,
                what,
            };
            state.violations.extend(found.map(violation));
        });
        let (state, current_call, history) = (monitor.clone(), network.current_call(), history.clone());
        cluster.on_change(move |view, change| {
            let call = current_call();
            history.change(change, call.as_ref().map(|current| current.call.operator));
            state.check(view, change, call.as_deref(), history.now(), staleness);
        });
        monitor
    }

    fn check(
        &self,
        view: &View<'_>,
        change: &Change,
        call: Option<&CurrentCall>,
        now: u64,
        staleness: AllowedStaleness,
    ) {
        let mut state = self.state();
        let MonitorState {
            timeline,
            news,
            violations,
            ..
        } = &mut *state;
        let checked = CheckedChange {
            view,
            change,
            call,
            now,
            timeline,
            staleness,
        };
        for (id, check) in changes::ALL {
            violations.extend(check(&checked).map(|what| Violation { id, at: now, what }));
        }
        timeline.record(change, call.is_some(), now);
        news.record(change, now);
        state.last_change = now;
    }

    /// The cluster was set back to a backup: what came after the backup is undone.
    pub fn on_restored(&self, cluster: &Cluster, now: u64) {
        let mut state = self.state();
        state.timeline.on_restored(cluster, now);
        state.news.on_restored();
        state.last_change = now;
    }

    /// The violations so far, in order.
    pub fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    /// When something last changed, in milliseconds since the beginning.
    pub fn last_change(&self) -> u64 {
        self.state().last_change
    }

    /// How many pods and services of each name were created, and how many of them were deleted.
    pub fn child_counts(&self) -> std::collections::BTreeMap<String, (u64, u64)> {
        let state = self.state();
        let mut counts = std::collections::BTreeMap::<String, (u64, u64)>::new();
        for child in state.timeline.children.values() {
            let (created, deleted) = counts
                .entry(format!("{} {}", child.plural, child.name))
                .or_default();
            *created += 1;
            *deleted += u64::from(child.deleted.is_some());
        }
        counts
    }

    /// How many jobs were created, and how many of them finished or were deleted.
    pub fn job_counts(&self) -> (u64, u64) {
        let state = self.state();
        let jobs = state.timeline.jobs.values();
        let over = jobs
            .filter(|j| j.deleted.is_some() || j.latest().is_some_and(|job| crate::job::end(job).is_some()));
        (state.timeline.jobs.len() as u64, over.count() as u64)
    }

    fn state(&self) -> MutexGuard<'_, MonitorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
