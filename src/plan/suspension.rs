//! Suspends and resumes a job. A suspended job has no pods, and its deadline does not run.

use crate::api::{ConditionStatus, ConditionType, ReplicaStatus};
use crate::job::Milestone;

use super::draft::Draft;
use super::objects;
use super::reasons;
use super::types::{ChildKind, Deletion};
use super::{recovery, resize};

/// Plans a suspended job: sets the condition first, then deletes the pods and services.
pub(super) fn suspend(draft: &mut Draft<'_>) {
    draft.mark_created();
    recovery::forget_progress(&mut draft.status.recovery);
    draft.status.recovery.backoff.clear();
    count_what_is_left(draft);
    if draft.status.is(ConditionType::Running) {
        draft.set(
            ConditionType::Running,
            ConditionStatus::False,
            reasons::SUSPENDED,
            &Milestone::Suspended,
        );
    }
    if draft.set(
        ConditionType::Suspended,
        ConditionStatus::True,
        reasons::SUSPENDED,
        &Milestone::Suspended,
    ) {
        let message = draft.job.job.message(&Milestone::Suspended);
        draft.event(false, reasons::SUSPENDED, message);
        // The condition is stored first. If the job is resumed before its pods are gone, their end is then no failure.
        return;
    }
    let pods = draft.observed.pods.values().filter(|p| !p.deleting);
    draft
        .plan
        .delete
        .extend(pods.map(|p| Deletion::new(ChildKind::Pod, &p.name, &p.uid)));
    let services = draft.observed.services.values().filter(|s| !s.deleting);
    draft
        .plan
        .delete
        .extend(services.map(|s| Deletion::new(ChildKind::Service, &s.name, &s.uid)));
    objects::end(draft);
}

/// Counts the pods that have not ended as active. A queue gives their capacity to another job once no replica is active.
fn count_what_is_left(draft: &mut Draft<'_>) {
    let counts = &mut draft.status.replica_statuses;
    for count in counts.values_mut() {
        *count = ReplicaStatus {
            selector: count.selector.take(),
            ..ReplicaStatus::default()
        };
    }
    let roles = &draft.job.topology.roles;
    for pod in draft.observed.pods.values().filter(|pod| !pod.is_terminal()) {
        // Pods of a role that was removed from the spec count, too.
        let role = roles
            .iter()
            .find(|role| role.may_have(&pod.name))
            .or(roles.first());
        if let Some(role) = role {
            counts.entry(role.name().to_owned()).or_default().active += 1;
        }
    }
}

/// Resumes a suspended job with a new start time. Returns false if the job is not suspended. The status is stored before
/// anything is created, so that the next plan distinguishes new pods from old ones.
pub(super) fn resume(draft: &mut Draft<'_>) -> bool {
    if !draft.status.is(ConditionType::Suspended) {
        return false;
    }
    draft.set(
        ConditionType::Suspended,
        ConditionStatus::False,
        reasons::RESUMED,
        &Milestone::Resumed,
    );
    // Clients show the last condition as the state of the job, so Suspended must not be the last one.
    let status = &mut draft.status;
    status
        .conditions
        .sort_by_key(|c| c.status == ConditionStatus::True);
    draft.start_clock();
    resize::record(draft);
    let message = draft.job.job.message(&Milestone::Resumed);
    draft.event(false, reasons::RESUMED, message);
    if !draft.observed.pods.is_empty() || !draft.observed.removed.is_empty() {
        // The existing pods belong to an earlier attempt, and new pods wait until they are gone.
        draft.status.recovery.job = recovery::later(draft.status.recovery.job, 1);
    }
    draft.count_pending_as_active();
    true
}
