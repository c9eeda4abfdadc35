//! Suspension: no pods, and the clock stands.

use crate::api::{ConditionStatus, ConditionType};
use crate::job::{Milestone, TrainingJob};

use super::children::deletion;
use super::{ChildKind, Draft, ledger};

/// Plans for a job that is to have no pods.
pub(super) fn suspend<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    draft.begin();
    ledger::forget_progress(&mut draft.status.recovery);
    for role in &draft.job.topology.roles {
        draft
            .status
            .replica_statuses
            .insert(role.name().to_owned(), Default::default());
    }
    if draft.status.is(ConditionType::Running) {
        draft.set(
            ConditionType::Running,
            ConditionStatus::False,
            "Suspended",
            &Milestone::Suspended,
        );
    }
    if draft.set(
        ConditionType::Suspended,
        ConditionStatus::True,
        "Suspended",
        &Milestone::Suspended,
    ) {
        let message = draft.job.job.message(&Milestone::Suspended);
        draft.event(false, "Suspended", message);
    }
    let pods = draft.observed.pods.values().filter(|p| !p.deleting);
    draft
        .plan
        .delete
        .extend(pods.map(|p| deletion(ChildKind::Pod, &p.name, &p.uid)));
    let services = draft.observed.services.values().filter(|s| !s.deleting);
    draft
        .plan
        .delete
        .extend(services.map(|s| deletion(ChildKind::Service, &s.name, &s.uid)));
}

/// Ends a suspension: the job starts anew, with a new start time.
pub(super) fn resume<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    if !draft.status.is(ConditionType::Suspended) {
        return;
    }
    draft.set(
        ConditionType::Suspended,
        ConditionStatus::False,
        "Resumed",
        &Milestone::Resumed,
    );
    draft.start_clock();
    let message = draft.job.job.message(&Milestone::Resumed);
    draft.event(false, "Resumed", message);
    if draft.observed.pods.values().any(|p| !p.deleting) {
        // The suspension did not get as far as deleting these. They must not meet the new ones.
        draft.status.recovery.job = draft.status.recovery.job.saturating_add(1);
    }
}
