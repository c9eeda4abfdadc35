//! Where each replica stands, from its pod and what the status remembers.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::{JobStatus, RestartScope};
use crate::job::TrainingJob;
use crate::job::{Replica, Role, Topology};
use crate::job::{ReplicaState, Replicas};
use crate::plan::observed::{Observed, Phase, PodRecord};
use crate::validate::ValidJob;

use super::failure::{Cause, Failure};
use super::ledger;

/// Where one replica stands.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// It has no pod and needs one.
    Missing,
    /// Its pod is of an earlier attempt, and must go before there is a new one.
    Outdated(Arc<PodRecord>),
    /// Its pod is being deleted, by whomever.
    Stopping,
    /// Its pod has not started.
    Pending,
    /// Its pod runs.
    Running,
    /// It has ended well; it may have no pod any more.
    Succeeded,
    /// It has failed.
    Failed(Failure),
}

/// Where the replicas of a role stand.
#[derive(Debug)]
pub(super) struct RoleStanding<'a> {
    pub(super) role: &'a Role<'a>,
    pub(super) scope: RestartScope,
    pub(super) replicas: Vec<Standing>,
}

/// Where all replicas of a job stand, role by role.
pub(super) fn survey<'a, J: TrainingJob>(
    job: &'a ValidJob<'a, J>,
    status: &JobStatus,
    observed: &Observed,
) -> Vec<RoleStanding<'a>> {
    let of_role = |role: &'a Role<'a>| {
        let scope = job.restart_scope(role);
        let completed = ledger::completed(&status.recovery, role);
        let started = ledger::started(&status.recovery, role);
        let replicas = role
            .all()
            .map(|replica| {
                let lost = scope != RestartScope::Replica && replica.index < started;
                standing::<J>(&replica, status, observed, &scope, &completed, lost)
            })
            .collect();
        RoleStanding {
            role,
            scope,
            replicas,
        }
    };
    job.topology.roles.iter().map(of_role).collect()
}

fn standing<J: TrainingJob>(
    replica: &Replica<'_>,
    status: &JobStatus,
    observed: &Observed,
    scope: &RestartScope,
    completed: &BTreeSet<u32>,
    lost: bool,
) -> Standing {
    let name = replica.host();
    let attempt = ledger::attempt(&status.recovery, replica.role, replica.index);
    let is_complete = completed.contains(&replica.index);
    let Some(pod) = observed.pods.get(&name) else {
        let ended_well = observed
            .completed
            .get(&name)
            .is_some_and(|made_for| *made_for >= attempt);
        return if is_complete || ended_well {
            Standing::Succeeded
        } else if lost {
            Standing::Failed(Failure::lost(replica, &name))
        } else {
            Standing::Missing
        };
    };
    if ledger::is_outdated(pod.attempt, attempt) {
        return Standing::Outdated(pod.clone());
    }
    match pod.phase {
        Phase::Succeeded => Standing::Succeeded,
        _ if is_complete => Standing::Succeeded,
        // A pod that somebody deletes says nothing until it is gone.
        _ if pod.deleting => Standing::Stopping,
        Phase::Failed => Standing::Failed(Failure::of_pod(replica, pod, J::FRAMEWORK.container)),
        phase => match restarted_in_place::<J>(replica, pod) {
            // Alone it is of no use to the others.
            Some(failure) if *scope != RestartScope::Replica => Standing::Failed(failure),
            _ if phase == Phase::Running => Standing::Running,
            _ => Standing::Pending,
        },
    }
}

/// The failure of a pod in which the kubelet restarted a container. An init container that is tried
/// again is none: the replica has not joined the others yet.
fn restarted_in_place<J: TrainingJob>(replica: &Replica<'_>, pod: &PodRecord) -> Option<Failure> {
    let containers = pod.containers.iter().filter(|c| !c.init);
    Failure::of_restart(replica, pod, containers, J::FRAMEWORK.container)
}

/// The replicas' states as success rules see them.
pub(super) fn states<'a>(topology: &'a Topology<'a>, survey: &[RoleStanding<'_>]) -> Replicas<'a> {
    Replicas::new(topology, |role, index| {
        let of_role = survey.iter().find(|r| r.role.name() == role.name());
        of_role
            .and_then(|r| r.replicas.get(index as usize))
            .map_or(ReplicaState::Absent, |s| match s {
                Standing::Missing | Standing::Outdated(_) => ReplicaState::Absent,
                Standing::Stopping => ReplicaState::Stopping,
                Standing::Pending => ReplicaState::Pending,
                Standing::Running => ReplicaState::Running,
                Standing::Succeeded => ReplicaState::Succeeded,
                Standing::Failed(Failure {
                    cause: Cause::Lost, ..
                }) => ReplicaState::Absent,
                Standing::Failed(_) => ReplicaState::Failed,
            })
    })
}
