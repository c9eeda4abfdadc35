//! Records the results of a survey in the status: restarts in place, and which replicas have started and completed.

use std::collections::BTreeSet;

use crate::api::RestartScope;

use super::draft::Draft;
use super::recovery;
use super::survey::{ObservedReplica, Situation, Survey};

/// Records the results of the survey in the status.
pub(super) fn record(draft: &mut Draft<'_>, survey: &Survey<'_>) {
    draft
        .status
        .recovery
        .in_place
        .clone_from(&survey.in_place.counted);
    let (policy, now) = (&draft.job.policy.failure, draft.now);
    recovery::charge(&mut draft.status, survey.in_place.fresh, policy, now);
    for (role, restarts) in &survey.in_place.fresh_of_roles {
        recovery::charge_role(&mut draft.status.recovery, role, *restarts);
    }
    record_progress(draft, survey);
}

/// Records which replicas have started and which have completed.
fn record_progress(draft: &mut Draft<'_>, survey: &Survey<'_>) {
    let remembered = &mut draft.status.recovery;
    for of_role in &survey.roles {
        let name = of_role.role.name();
        let replicas = &of_role.replicas;
        let completed = replicas
            .iter()
            .filter(|r| matches!(r.situation, Situation::Succeeded));
        let completed: BTreeSet<u32> = completed.map(|r| r.replica.index).collect();
        if completed.is_empty() {
            remembered.completed.remove(name);
        } else {
            remembered
                .completed
                .insert(name.to_owned(), recovery::format_indexes(&completed));
        }
        if of_role.scope == RestartScope::Replica {
            remembered.started.remove(name);
            continue;
        }
        let has_pod =
            |r: &&ObservedReplica<'_>| !matches!(r.situation, Situation::Missing | Situation::Outdated);
        let prefix = replicas.iter().take_while(has_pod).count();
        // The last pods may be stopping because the role was smaller for a while. Their end is not a failure.
        let leaving = |r: &&ObservedReplica<'_>| matches!(r.situation, Situation::Stopping(_));
        let surplus = replicas[..prefix].iter().rev().take_while(leaving).count();
        let started = u32::try_from(prefix - surplus)
            .unwrap_or(u32::MAX)
            .max(recovery::started(remembered, of_role.role));
        if started == 0 {
            remembered.started.remove(name);
        } else {
            remembered
                .started
                .insert(name.to_owned(), i32::try_from(started).unwrap_or(i32::MAX));
        }
    }
    let known = |name: &str| survey.roles.iter().any(|r| r.role.name() == name);
    remembered.started.retain(|name, _| known(name));
    remembered.completed.retain(|name, _| known(name));
}
