//! The survey: where each replica of a job stands, from its pod and what the status remembers. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::observed::{Observed, Phase, PodRecord};
use crate::api::{JobStatus, RestartScope};
use crate::job::{FailureTolerance, TrainingJob};
use crate::job::{Replica, Role, Topology};
use crate::job::{ReplicaState, Replicas};
use crate::validate::ValidJob;

use super::failure::{Failure, FailureCause};
use super::recovery;

/// Where one replica stands.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// It has no pod and needs one.
    Missing,
    /// Its pod is of an earlier attempt, and must go before there is a new one.
    Outdated(Arc<PodRecord>),
    /// Its pod is being deleted, by whomever: the failure is that it will be gone.
    Stopping(Failure),
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

/// What is known of an active job before anything is decided.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    /// Where the replicas stand, role by role.
    pub(super) roles: Vec<RoleStanding<'a>>,
    /// What the kubelets restarted.
    pub(super) in_place: RestartsInPlace,
}

/// Restarts of containers by the kubelet where replicas restart one by one. Where they restart together, such a restart
/// is a failure like any other.
#[derive(Debug, Default)]
pub(super) struct RestartsInPlace {
    /// All that are counted now, by replica.
    pub(super) counted: BTreeMap<String, i32>,
    /// Those among them that the status does not have yet.
    pub(super) fresh: i32,
}

/// Looks where all replicas of a job stand.
pub(super) fn survey<'a, J: TrainingJob>(
    job: &'a ValidJob<'a, J>,
    status: &JobStatus,
    observed: &Observed,
) -> Survey<'a> {
    Survey {
        roles: standings(job, status, observed),
        in_place: restarts_in_place(job, status, observed),
    }
}

fn standings<'a, J: TrainingJob>(
    job: &'a ValidJob<'a, J>,
    status: &JobStatus,
    observed: &Observed,
) -> Vec<RoleStanding<'a>> {
    let of_role = |role: &'a Role<'a>| {
        let scope = job.restart_scope(role);
        let completed = recovery::completed(&status.recovery, role);
        let started = recovery::started(&status.recovery, role);
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

fn restarts_in_place<J: TrainingJob>(
    job: &ValidJob<'_, J>,
    status: &JobStatus,
    observed: &Observed,
) -> RestartsInPlace {
    let mut found = RestartsInPlace::default();
    for replica in job.topology.all() {
        // Failures that never matter are not counted.
        let never_matters = job.job.tolerance(replica.role) == FailureTolerance::Always;
        let is_failure = !restarts_alone(replica.role, &job.restart_scope(replica.role));
        if never_matters || is_failure {
            continue;
        }
        let Some(pod) = observed.pods.get(&replica.host()) else {
            continue;
        };
        let attempt = recovery::attempt(&status.recovery, replica.role, replica.index);
        if recovery::is_outdated(pod.attempt, attempt) {
            continue;
        }
        let key = replica.key();
        let known = status.recovery.in_place.get(&key).copied().unwrap_or(0).max(0);
        let live = pod.restarts();
        found.fresh = found.fresh.saturating_add(live.saturating_sub(known).max(0));
        if live.max(known) > 0 {
            found.counted.insert(key, live.max(known));
        }
    }
    found
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
    let attempt = recovery::attempt(&status.recovery, replica.role, replica.index);
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
    if recovery::is_outdated(pod.attempt, attempt) {
        return Standing::Outdated(pod.clone());
    }
    match pod.phase {
        Phase::Succeeded => Standing::Succeeded,
        _ if is_complete => Standing::Succeeded,
        // A pod that somebody deletes says nothing until it is gone.
        _ if pod.deleting => Standing::Stopping(Failure::lost(replica, &name)),
        Phase::Failed => Standing::Failed(Failure::of_pod(replica, pod, J::FRAMEWORK.container)),
        phase => match restarted_in_place::<J>(replica, pod) {
            // Alone it is of no use to the others.
            Some(failure) if !restarts_alone(replica.role, scope) => Standing::Failed(failure),
            _ if phase == Phase::Running => Standing::Running,
            _ => Standing::Pending,
        },
    }
}

/// Whether a container of the role that its kubelet restarts is back in the job.
fn restarts_alone(role: &Role<'_>, scope: &RestartScope) -> bool {
    role.definition.rejoins || *scope == RestartScope::Replica
}

/// The failure of a pod in which the kubelet restarted a container. An init container that is tried
/// again is none: the replica has not joined the others yet.
fn restarted_in_place<J: TrainingJob>(replica: &Replica<'_>, pod: &PodRecord) -> Option<Failure> {
    let containers = pod.containers.iter().filter(|c| !c.init);
    Failure::of_restart(replica, pod, containers, J::FRAMEWORK.container)
}

/// The replicas' states as success rules see them.
pub(super) fn states<'a>(topology: &'a Topology<'a>, survey: &Survey<'_>) -> Replicas<'a> {
    Replicas::new(topology, |role, index| {
        let of_role = survey.roles.iter().find(|r| r.role.name() == role.name());
        of_role
            .and_then(|r| r.replicas.get(index as usize))
            .map_or(ReplicaState::Absent, |s| match s {
                Standing::Missing | Standing::Outdated(_) => ReplicaState::Absent,
                Standing::Stopping(_) => ReplicaState::Stopping,
                Standing::Pending => ReplicaState::Pending,
                Standing::Running => ReplicaState::Running,
                Standing::Succeeded => ReplicaState::Succeeded,
                Standing::Failed(Failure {
                    cause: FailureCause::Lost,
                    ..
                }) => ReplicaState::Absent,
                Standing::Failed(_) => ReplicaState::Failed,
            })
    })
}
