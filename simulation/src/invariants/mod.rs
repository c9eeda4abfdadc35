//! What must hold of every cluster with this operator, whatever goes wrong.
//!
//! [`Monitor`] looks at each change as it is stored; [`rest`] looks at what is left when all is calm.

mod changes;
mod memory;
pub mod rest;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_memory::{Change, Cluster, View};

use crate::call::Cause;
use crate::history::History;
use crate::network::Network;

use memory::Memory;

/// An invariant that did not hold.
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

/// How old what an operator acts on may be, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Of what others did: a pass takes its time, and calls have their time-outs.
    pub others: u64,
    /// Of what operators themselves did: nothing, unless there are several or their watches lag.
    pub own: u64,
}

/// A change, as the invariants see it: `memory` does not know of it yet.
pub(crate) struct Moment<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) change: &'a Change,
    pub(crate) cause: Option<&'a Cause>,
    pub(crate) now: u64,
    pub(crate) memory: &'a Memory,
    pub(crate) patience: Patience,
}

/// An invariant about changes: says what is wrong with this one.
pub(crate) type Check = fn(&Moment<'_>) -> Option<String>;

/// Looks at every change of a cluster.
#[derive(Clone)]
pub struct Monitor {
    state: Arc<Mutex<State>>,
}

struct State {
    memory: Memory,
    found: Vec<Violation>,
    last_change: u64,
}

impl Monitor {
    /// Looks at every change from now on.
    pub fn attach(cluster: &Cluster, network: &Network, history: &History, patience: Patience) -> Self {
        let state = Arc::new(Mutex::new(State {
            memory: Memory::default(),
            found: Vec::new(),
            last_change: 0,
        }));
        let monitor = Self { state };
        let (state, cause_now, history) = (monitor.clone(), network.causes(), history.clone());
        cluster.on_change(move |view, change| {
            let cause = cause_now();
            history.change(change, cause.as_ref().map(|cause| cause.call.operator));
            state.look(view, change, cause.as_deref(), history.now(), patience);
        });
        monitor
    }

    fn look(&self, view: &View<'_>, change: &Change, cause: Option<&Cause>, now: u64, patience: Patience) {
        let mut state = self.state();
        let State { memory, found, .. } = &mut *state;
        let moment = Moment {
            view,
            change,
            cause,
            now,
            memory,
            patience,
        };
        for (id, check) in changes::ALL {
            found.extend(check(&moment).map(|what| Violation { id, at: now, what }));
        }
        memory.enter(change, cause.is_some(), now);
        state.last_change = now;
    }

    /// The cluster was set back to a backup: what came after it has not happened.
    pub fn restored(&self, cluster: &Cluster, now: u64) {
        let mut state = self.state();
        state.memory.restored(cluster, now);
        state.last_change = now;
    }

    /// What did not hold so far, in order.
    pub fn found(&self) -> Vec<Violation> {
        self.state().found.clone()
    }

    /// When something last changed.
    pub fn last_change(&self) -> u64 {
        self.state().last_change
    }

    /// How many pods and services of each name were made, and how many of them are gone.
    pub fn counts(&self) -> std::collections::BTreeMap<String, (u64, u64)> {
        let state = self.state();
        let mut counts = std::collections::BTreeMap::<String, (u64, u64)>::new();
        for child in state.memory.children.values() {
            let (made, gone) = counts
                .entry(format!("{} {}", child.plural, child.name))
                .or_default();
            *made += 1;
            *gone += u64::from(child.gone.is_some());
        }
        counts
    }

    /// How many jobs there were, and how many of them ended or are gone.
    pub fn lives(&self) -> (u64, u64) {
        let state = self.state();
        let jobs = state.memory.jobs.values();
        let over =
            jobs.filter(|j| j.gone.is_some() || j.latest().is_some_and(|job| crate::job::end(job).is_some()));
        (state.memory.jobs.len() as u64, over.count() as u64)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
