//! I18: what is stored reaches every operator in time.
//!
//! An operator asks for a watch from the version that it was told last. So how old the first change behind that version
//! is tells how long the operator has been blind.

use std::collections::{BTreeMap, BTreeSet};

use kube_memory::Change;

use super::AllowedStaleness;
use crate::call::Call;
use crate::faults::CallFault;
use crate::job;

/// The changes that operators watch, and what excuses that they are not told of them.
#[derive(Default)]
pub(crate) struct News {
    /// By resource, the version and the time of each change, in order.
    changes: BTreeMap<String, Vec<(u64, u64)>>,
    /// The operators and resources of which the latest list or watch had a fault.
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

    /// The cluster was set back to a backup: only lists tell what it holds now.
    pub(crate) fn on_restored(&mut self) {
        self.changes.clear();
    }

    /// Looks at a call with this fault, and returns what is wrong if it is a watch that begins too late. Nothing is if
    /// the call before it had a fault: the operator may have waited for an answer, and then before it asked again.
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
        let version = told_version(call)?;
        let changes = self.changes.get(resource)?;
        let first = changes.partition_point(|(changed, _)| *changed <= version);
        let (untold, since) = *changes.get(first)?;
        let blind = now - since;
        (blind > staleness.of_others).then(|| {
            format!("op{operator} asks for {resource} behind version {version}: {untold} is {blind} ms old")
        })
    }
}

/// The version from which a watch asks to be told; `None` of another call.
fn told_version(call: &Call) -> Option<u64> {
    let mut pairs = call.query.split('&').filter(|_| call.verb == "watch");
    pairs
        .find_map(|pair| pair.strip_prefix("resourceVersion="))?
        .parse()
        .ok()
}
