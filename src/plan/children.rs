//! Pods and services that an active job lacks, or has too many of.

use crate::api::{FailureAction, RestartScope};
use crate::job::TrainingJob;
use crate::render;

use super::draft::Draft;
use super::recovery;
use super::survey::{RoleStanding, Standing};
use super::types::{ChildKind, Deletion, PlannedPod};

/// Plans the creates and deletes that bring the job's children in line with its spec.
/// Nothing is made as long as the job waits for its turn.
pub(super) fn reconcile<J: TrainingJob>(draft: &mut Draft<'_, J>, survey: &[RoleStanding<'_>]) {
    delete_surplus(draft);
    delete_outdated(draft, survey);
    if !draft.waits {
        create_services(draft);
        create_pods(draft, survey);
    }
}

/// Children of ours that no replica has: after scaling down, or made by hand. Names decide, not
/// labels, which anybody may edit.
fn delete_surplus<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let (topology, observed) = (&draft.job.topology, draft.observed);
    let pods = observed
        .pods
        .values()
        .filter(|p| !p.deleting && !topology.has_replica_named(&p.name));
    let services = observed
        .services
        .values()
        .filter(|s| !s.deleting && !topology.has_service_named(&s.name));
    draft
        .plan
        .delete
        .extend(pods.map(|p| deletion(ChildKind::Pod, &p.name, &p.uid)));
    draft
        .plan
        .delete
        .extend(services.map(|s| deletion(ChildKind::Service, &s.name, &s.uid)));
}

fn delete_outdated<J: TrainingJob>(draft: &mut Draft<'_, J>, survey: &[RoleStanding<'_>]) {
    for standing in survey.iter().flat_map(|r| &r.replicas) {
        if let Standing::Outdated(pod) = standing
            && !pod.deleting
        {
            draft
                .plan
                .delete
                .push(deletion(ChildKind::Pod, &pod.name, &pod.uid));
        }
    }
}

fn create_services<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let (job, observed) = (draft.job, draft.observed);
    let missing = render::services(job, |name| !observed.services.contains_key(name));
    draft.plan.create_services.extend(missing);
}

/// Pods of replicas that restart together are made together, once the last of the old ones is gone:
/// one that came early would join a cluster that is about to die. If the whole job restarts, surplus
/// pods must be gone as well: they would find the new ones under the old names.
fn create_pods<J: TrainingJob>(draft: &mut Draft<'_, J>, survey: &[RoleStanding<'_>]) {
    let is_leaving = |s: &Standing| matches!(s, Standing::Outdated(_) | Standing::Stopping(_));
    let leaving = |r: &&RoleStanding<'_>| r.replicas.iter().any(is_leaving);
    let topology = &draft.job.topology;
    let surplus = draft
        .observed
        .pods
        .keys()
        .any(|name| !topology.has_replica_named(name));
    let rules = &draft.job.policy.failure.rules;
    let may = |action| rules.iter().any(|rule| rule.action.as_ref() == Some(action));
    let (job_may, role_may) = (may(&FailureAction::RestartJob), may(&FailureAction::RestartRole));
    let together = |r: &RoleStanding<'_>| job_may || r.scope == RestartScope::Job;
    let waits = |r: &RoleStanding<'_>| together(r) && (surplus || leaving(&r));
    if survey.iter().any(waits) {
        return;
    }
    for of_role in survey {
        if (role_may || of_role.scope != RestartScope::Replica) && leaving(&of_role) {
            continue;
        }
        let first = draft.job.job.starts_after(topology, of_role.role);
        let is_due =
            |r: &RoleStanding<'_>| !first.contains(&r.role.name()) || r.replicas.iter().all(has_started);
        if !survey.iter().all(is_due) {
            continue;
        }
        for (index, standing) in (0..).zip(&of_role.replicas) {
            if matches!(standing, Standing::Missing) {
                draft.plan.create_pods.push(PlannedPod {
                    name: of_role.role.host(index),
                    attempt: recovery::attempt(&draft.status.recovery, of_role.role, index),
                });
            }
        }
    }
}

fn has_started(standing: &Standing) -> bool {
    matches!(
        standing,
        Standing::Running | Standing::Succeeded | Standing::Failed(_)
    )
}

pub(super) fn deletion(kind: ChildKind, name: &str, uid: &str) -> Deletion {
    Deletion {
        kind,
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}
