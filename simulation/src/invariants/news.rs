//! I18: stored changes reach every operator in time.
//!
//! An operator requests a watch from the last version that it received. The age of the first change after that
//! version is the time for which the operator has been without updates.

use std::collections::{BTreeMap, BTreeSet};

use kube_memory::Change;

use super::AllowedStaleness;
use crate::call::Call;
use crate::faults::CallFault;
use crate::world::job;

/// The changes that operators watch, and the faults that excuse late updates.
#[derive(Default)]
pub(crate) struct News {
    /// The version and time of each change in order, by resource.
    changes: BTreeMap<String, Vec<(u64, u64)>>,
    /// The operators and resources whose latest list or watch had a fault.
    faulty: BTreeSet<(usize, String)>,
}

impl News {
    /// Records a change, if operators watch such objects.
    pub(crate) fn record(&mut self, change: &Change, now: u64) {
        let is_job = job::PLURALS.contains(&change.plural());
        let is_child = || {
            let before = change.previous();
            job::is_labelled(&**change.object()) || before.is_some_and(|before| job::is_labelled(&**before))
        };
        if is_job || is_child() {
            let changes = self.changes.entry(change.plural().to_owned()).or_default();
            changes.push((change.resource_version(), now));
        }
    }

    /// Drops the recorded changes after a restore, because then only lists return the current state.
    pub(crate) fn on_restored(&mut self) {
        self.changes.clear();
    }

    /// Checks a call with this fault. Returns the problem if the call is a watch that begins too late. A fault of the
    /// previous call excuses it, because the operator may have waited for its response and then before the next call.
    pub(crate) fn check(
        &mut self,
        call: &Call,
        fault: Option<&CallFault>,
        now: u64,
        staleness: AllowedStaleness,
    ) -> Option<String> {
        if !matches!(call.verb, "list" | "watch") {
            return None;
        }
        let Call {
            operator, resource, ..
        } = call;
        let watched = (*operator, resource.clone());
        if fault.is_some() {
            self.faulty.insert(watched);
            return None;
        }
        if self.faulty.remove(&watched) {
            return None;
        }
        let version = resource_version_of(call)?;
        let changes = self.changes.get(resource)?;
        let first = changes.partition_point(|(changed, _)| *changed <= version);
        let (untold, since) = *changes.get(first)?;
        let blind = now - since;
        (blind > staleness.of_others).then(|| {
            format!("op{operator} asks for {resource} behind version {version}: {untold} is {blind} ms old")
        })
    }
}

/// Returns the version from which a watch starts, or `None` for another call.
fn resource_version_of(call: &Call) -> Option<u64> {
    let mut pairs = call.query.split('&').filter(|_| call.verb == "watch");
    pairs
        .find_map(|pair| pair.strip_prefix("resourceVersion="))?
        .parse()
        .ok()
}
