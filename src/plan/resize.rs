//! Changes of the numbers of replicas in a job that has pods.
//!
//! The status records the numbers for which the pods of the attempt were created (`recovery.sizes`). If one changes that
//! the environment of other replicas has, the processes would wait for each other forever, because each counts in its
//! own way. So the whole job restarts. This is not a failure and counts against no limit.

use std::collections::BTreeMap;

use crate::api::{ConditionType, JobStatus, MAX_REPLICAS, Recovery};
use crate::job::{Replica, Role, SharedTexts, Topology};
use crate::validate::{ValidJob, role_without_spec};

type Sizes = BTreeMap<String, i32>;

/// Returns the changes of the numbers of replicas for which the operator restarts all pods of a stored job, such as
/// `Worker 2 -> 4`. Returns `None` if it restarts none: the job is suspended or has ended, has the numbers for which its
/// pods were created, or has an environment that does not depend on the changed ones.
pub fn restarts_for_sizes(job: &ValidJob<'_>) -> Option<String> {
    let status = job.job.status()?;
    let is_active = !job.policy.suspend && !status.is_finished() && !status.is(ConditionType::Suspended);
    is_active.then(|| change(job, status)).flatten()
}

pub(super) fn change(job: &ValidJob<'_>, status: &JobStatus) -> Option<String> {
    let (old, new) = (&status.recovery.sizes, job.topology.sizes());
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
    let is_gone = |name: &&String| !job.topology.roles.iter().any(|role| role.name() == *name);
    for name in old.keys().filter(is_gone) {
        // The class of a role that users name is not recorded.
        let definitions = job.job.framework().roles.iter();
        let classes = definitions.filter(|d| d.source.is_open() || d.name == name);
        let gone = classes.map(|definition| role_without_spec(&*job.job, definition, name));
        let matters = |role: &Role<'_>| !job.job.is_elastic(&job.topology, role);
        before.roles.extend(gone.filter(matters));
    }
    for role in &mut before.roles {
        if !job.job.is_elastic(&job.topology, role) {
            let size = old.get(role.name()).copied().unwrap_or(0).clamp(0, MAX_REPLICAS);
            role.replicas = u32::try_from(size).unwrap_or(0);
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

/// Returns a change for which all pods restart if they may have been created for other numbers than the spec has now,
/// because the spec was edited before the first status was stored, other than that of an invalid spec.
pub(super) fn early_change(job: &ValidJob<'_>, stored: &JobStatus) -> Option<String> {
    let generation = job.job.meta().generation;
    let other = |(name, size): (String, i32)| (name, size.saturating_add(1));
    let has_started = stored.start_time.is_some() || stored.recovery != Recovery::default();
    let may_differ = !has_started
        && generation.is_some_and(|generation| generation > 1)
        && depends_on(job, &job.topology.sizes().into_iter().map(other).collect());
    may_differ.then(|| "an edit at its start".to_owned())
}
