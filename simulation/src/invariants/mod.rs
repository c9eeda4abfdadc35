//! The invariants, which must hold in every cluster with this operator under all faults.
//!
//! * `changes`: the list of invariants that [`Monitor`] checks at each change when it is stored.
//! * `children`, `statuses`, `conditions`: invariants of changes to children and to statuses.
//! * `policies`: an invariant of changes, about failure and success policies, and about restarts for lost pods.
//! * `gangs`: an invariant of jobs that a gang scheduler binds.
//! * `stalls`: an invariant of jobs whose output is watched.
//! * `queue`: an invariant of jobs that a queue admits and evicts.
//! * `news`: stored changes reach operators in time. It is checked at the start of each watch.
//! * [`at_rest`]: invariants of a settled cluster.
//! * Invariants of calls are in `modes/run.rs` and `modes/settle.rs`. Limits on the cost of a fault are in
//!   `modes/exhaustive.rs`.
//!
//! To add an invariant: write a function and add it to `changes::ALL`, or to `SettledCluster::problems`. Add a line
//! to docs/maintainers/reliability.md, and a test that violates the invariant to `tests/invariants/`.

pub mod at_rest;
mod changes;
mod children;
mod conditions;
mod gangs;
mod news;
mod policies;
mod queue;
mod stalls;
mod statuses;
mod timeline;

use std::sync::Arc;

use kube_memory::{Change, Cluster, View};

use parking_lot::Mutex;

use crate::call::CurrentCall;
use crate::world::history::History;
use crate::world::network::Network;
use crate::world::output::Outputs;

use news::News;
use timeline::Timeline;

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the invariant in docs/maintainers/reliability.md.
    pub id: &'static str,
    /// The time, in milliseconds since the start.
    pub at: u64,
    /// A description of the violation.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, millis) = (self.at / 1_000, self.at % 1_000);
        write!(f, "{} at {seconds}.{millis:03} s: {}", self.id, self.what)
    }
}

/// The allowed age of the state that an operator acts on, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedStaleness {
    /// The limit for changes by others. Watches have a latency, and calls have timeouts.
    pub of_others: u64,
    /// The limit for changes by operators: 0, unless there are several operators or lists may return older states.
    pub of_own: u64,
}

/// A change to check. The timeline does not contain it yet.
pub(crate) struct CheckedChange<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) change: &'a Change,
    /// The operator call that made the change.
    pub(crate) call: Option<&'a CurrentCall>,
    pub(crate) now: u64,
    pub(crate) timeline: &'a Timeline,
    pub(crate) outputs: &'a Outputs,
    pub(crate) staleness: AllowedStaleness,
}

/// An invariant of changes. Returns a description of the violation, if there is one.
pub(crate) type Check = fn(&CheckedChange<'_>) -> Option<String>;

/// Checks the invariants at every change of a cluster.
#[derive(Clone)]
pub struct Monitor {
    state: Arc<Mutex<MonitorState>>,
}

struct MonitorState {
    timeline: Timeline,
    news: News,
    outputs: Outputs,
    violations: Vec<Violation>,
    last_change: u64,
}

impl Monitor {
    /// Starts to check every change.
    pub fn attach(
        cluster: &Cluster,
        network: &Network,
        history: &History,
        staleness: AllowedStaleness,
    ) -> Self {
        let state = Arc::new(Mutex::new(MonitorState {
            timeline: Timeline::default(),
            news: News::default(),
            outputs: Outputs::serve(cluster, history),
            violations: Vec::new(),
            last_change: 0,
        }));
        let monitor = Self { state };
        let (listening, clock) = (monitor.clone(), history.clone());
        network.listen(move |call, fault| {
            let (now, mut state) = (clock.now(), listening.state.lock());
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

    /// Returns for how many milliseconds all pods whose logs were read have printed nothing.
    pub fn silence(&self, now: u64) -> Option<u64> {
        self.state.lock().outputs.all_silent_for(now)
    }

    fn check(
        &self,
        view: &View<'_>,
        change: &Change,
        call: Option<&CurrentCall>,
        now: u64,
        staleness: AllowedStaleness,
    ) {
        let mut state = self.state.lock();
        let MonitorState {
            timeline,
            news,
            outputs,
            violations,
            ..
        } = &mut *state;
        let checked = CheckedChange {
            view,
            change,
            call,
            now,
            timeline,
            outputs,
            staleness,
        };
        for (id, check) in changes::ALL {
            violations.extend(check(&checked).map(|what| Violation { id, at: now, what }));
        }
        timeline.record(change, call.is_some(), now);
        news.record(change, now);
        state.last_change = now;
    }

    /// Handles a restore of the cluster: changes after the backup are undone.
    pub fn on_restored(&self, cluster: &Cluster, now: u64) {
        let mut state = self.state.lock();
        state.timeline.on_restored(cluster, now);
        state.news.on_restored();
        state.last_change = now;
    }

    /// Records that the operators' clocks are set ahead.
    pub fn on_clocks_set(&self) {
        self.state.lock().timeline.clocks_were_set = true;
    }

    /// Returns the violations so far, in order.
    pub fn violations(&self) -> Vec<Violation> {
        self.state.lock().violations.clone()
    }

    /// Returns the UIDs of jobs whose status was written by others than operators.
    pub fn edited_jobs(&self) -> std::collections::BTreeSet<String> {
        let state = self.state.lock();
        let edited = state
            .timeline
            .jobs
            .iter()
            .filter(|(_, job)| job.status_edited.is_some());
        edited.map(|(uid, _)| uid.clone()).collect()
    }

    /// Returns the time of the last change, in milliseconds since the start.
    pub fn last_change(&self) -> u64 {
        self.state.lock().last_change
    }

    /// Returns the numbers of created and deleted children, by plural and name.
    pub fn child_counts(&self) -> std::collections::BTreeMap<String, (u64, u64)> {
        let state = self.state.lock();
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

    /// Returns the number of created jobs, and the number of jobs that finished or were deleted.
    pub fn job_counts(&self) -> (u64, u64) {
        let state = self.state.lock();
        let jobs = state.timeline.jobs.values();
        let over = jobs.filter(|j| {
            j.deleted.is_some()
                || j.latest()
                    .is_some_and(|job| crate::world::job::end(job).is_some())
        });
        (state.timeline.jobs.len() as u64, over.count() as u64)
    }
}
