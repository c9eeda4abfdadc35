//! Changes of the numbers of replicas in a job that has pods.
//!
//! The status records the numbers for which the pods of the attempt were created (`recovery.sizes`). If one changes that
//! the environment of other replicas has, the processes would wait for each other forever, because each counts in its
//! own way. So the whole job restarts. This is not a failure and counts against no limit.

use std::collections::BTreeMap;

use crate::api::{ConditionStatus, ConditionType, JobStatus, MAX_REPLICAS};
use crate::job::{Milestone, Replica, SharedTexts, Topology};
use crate::validate::ValidJob;

use super::draft::Draft;
use super::{reasons, recovery};

type Sizes = BTreeMap<String, i32>;

/// Returns the numbers of replicas by role, without roles of no replicas.
fn sizes(topology: &Topology<'_>) -> Sizes {
    let roles = topology.roles.iter().filter(|role| role.replicas > 0);
    let size = |replicas: u32| i32::try_from(replicas).unwrap_or(i32::MAX);
    roles
        .map(|role| (role.name().to_owned(), size(role.replicas)))
        .collect()
}

/// Returns the changes of the numbers of replicas for which the operator restarts all pods of a stored job, such as
/// `Worker 2 -> 4`. Returns `None` if it restarts none: the job is suspended or has ended, has the numbers for which its
/// pods were created, or has an environment that does not depend on the changed ones.
pub fn restarts_for_sizes(job: &ValidJob<'_>) -> Option<String> {
    let status = job.job.status()?;
    let is_active = !job.policy.suspend && !status.is_finished() && !status.is(ConditionType::Suspended);
    is_active.then(|| change(job, status)).flatten()
}

fn change(job: &ValidJob<'_>, status: &JobStatus) -> Option<String> {
    let (old, new) = (&status.recovery.sizes, sizes(&job.topology));
    // The Go operator and earlier versions record no numbers. Their jobs must survive an upgrade.
    if old.is_empty() || *old == new || !depends_on(job, old) {
        return None;
    }
    let size = |sizes: &Sizes, name: &str| sizes.get(name).copied().unwrap_or(0);
    let names = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)));
    let changed = names.filter(|name| size(old, name) != size(&new, name));
    let change = |name: &String| format!("{name} {} -> {}", size(old, name), size(&new, name));
    Some(changed.map(change).collect::<Vec<_>>().join(", "))
}

/// Returns true if the environment of a replica depends on the numbers that differ from `old`, apart from those of roles
/// that are elastic.
fn depends_on(job: &ValidJob<'_>, old: &Sizes) -> bool {
    let mut before = job.topology.clone();
    before.shared_texts = SharedTexts::default();
    let is_gone = |name: &String| !before.roles.iter().any(|role| role.name() == name);
    // A role that is no longer in the spec cannot be rendered. Another number takes the place of its own.
    let lacks_role = old.keys().any(is_gone);
    for role in &mut before.roles {
        if !job.job.is_elastic(&job.topology, role) {
            let number = old.get(role.name()).copied().unwrap_or(0).clamp(0, MAX_REPLICAS);
            role.replicas = u32::try_from(number).unwrap_or(0) + u32::from(lacks_role);
        }
    }
    let mut roles = job.topology.roles.iter().zip(&before.roles);
    roles.any(|(now, earlier)| {
        // The first and the last replica stand for the others.
        let last = now.replicas.min(earlier.replicas).checked_sub(1);
        let mut indexes = last.into_iter().chain(last.map(|_| 0));
        indexes.any(|index| {
            let of = |topology: &Topology<'_>, role| job.job.env(topology, &Replica { role, index });
            of(&job.topology, now) != of(&before, earlier)
        })
    })
}

/// Returns true if pods may have been created for other numbers than the spec has now, because the spec was edited before
/// the first status was stored.
fn may_differ_from_first(draft: &Draft<'_>) -> bool {
    let generation = draft.job.job.meta().generation;
    let other = |(name, size): (String, i32)| (name, size.saturating_add(1));
    draft.old == JobStatus::default()
        && generation.is_some_and(|generation| generation > 1)
        && depends_on(
            draft.job,
            &sizes(&draft.job.topology).into_iter().map(other).collect(),
        )
}

/// Records the numbers of replicas for which pods are created from now on.
pub(super) fn record(draft: &mut Draft<'_>) {
    draft.status.recovery.sizes = sizes(&draft.job.topology);
}

/// Restarts the whole job if its pods were created for other numbers of replicas than the spec has. Returns false if no
/// restart is due. The next plan, made from the stored status, deletes the pods.
pub(super) fn restart(draft: &mut Draft<'_>) -> bool {
    let change = match change(draft.job, &draft.status) {
        Some(change) => change,
        None if may_differ_from_first(draft) => "an edit at its start".to_owned(),
        None => {
            record(draft);
            return false;
        }
    };
    record(draft);
    let Some(ahead) = draft.observed.pods.values().map(|pod| pod.attempt).max() else {
        // Pods are created for the new numbers once these are stored.
        draft.store_first();
        return false;
    };
    let recovery = &mut draft.status.recovery;
    // All pods are of an earlier attempt then. A number far ahead is invalid, and its pod is outdated anyway.
    let ahead = Some(ahead).filter(|ahead| !recovery::is_outdated(*ahead, 0));
    let ahead = ahead.and_then(|ahead| i32::try_from(ahead).ok()).unwrap_or(0);
    recovery.job = recovery::later(ahead.max(recovery.job), 1);
    recovery::forget_progress(recovery);
    let milestone = Milestone::Resized { change: &change };
    let (type_, holds) = (ConditionType::Restarting, ConditionStatus::True);
    draft.set(type_, holds, reasons::RESIZED, &milestone);
    let message = draft.job.job.message(&milestone);
    draft.event(false, reasons::RESIZED, message);
    true
}
