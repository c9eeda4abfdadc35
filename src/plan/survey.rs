//! The survey: where each replica of a job stands, from its pod and what the status remembers. Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::observed::{ContainerKind, Observed, Phase, PodRecord};
use crate::api::{JobStatus, MAX_COUNT, RestartScope};
use crate::job::{FailureTolerance, TrainingJob};
use crate::job::{Replica, Role, Topology};
use crate::job::{ReplicaState, Replicas};
use crate::validate::ValidJob;

use super::failure::{Failure, FailureCause};
use super::pod_end::{PodEnd, counted_containers, end_of, main_name};
use super::recovery;

/// Where one replica stands.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// It has no pod and needs one.
    Missing,
    /// Its pod is of an earlier attempt, and must go before there is a new one.
    Outdated(Arc<PodRecord>),
    /// Its pod is being deleted, and nothing else has to go with it: the failure is that it will be gone.
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

/// Restarts of containers by the kubelet that count against the job's limits: those of init containers, and of the
/// framework's container where replicas restart one by one. Where they restart together, a restart of the framework's
/// container is a failure like any other. Restarts of other containers count nowhere.
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
    let by_rules = !job.policy.failure.rules.is_empty();
    let of_role = |role: &'a Role<'a>| {
        let scope = job.restart_scope(role);
        let completed = recovery::completed(&status.recovery, role);
        let started = recovery::started(&status.recovery, role);
        let replicas = role
            .all()
            .map(|replica| {
                let lost = scope != RestartScope::Replica && replica.index < started;
                standing(&replica, status, observed, &scope, &completed, lost, by_rules)
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
        if job.job.tolerance(replica.role) == FailureTolerance::Always {
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
        let alone = restarts_alone(replica.role, &job.restart_scope(replica.role));
        let counted = counted_containers(pod, main_name(replica.role));
        let counted = counted.filter(|c| alone || c.kind == ContainerKind::Init);
        let live = counted.map(|c| c.restarts).fold(0, i32::saturating_add);
        let live = live.min(MAX_COUNT);
        found.fresh = found.fresh.saturating_add(live.saturating_sub(known).max(0));
        if live.max(known) > 0 {
            found.counted.insert(key, live.max(known));
        }
    }
    found
}

fn standing(
    replica: &Replica<'_>,
    status: &JobStatus,
    observed: &Observed,
    scope: &RestartScope,
    completed: &BTreeSet<u32>,
    lost: bool,
    by_rules: bool,
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
    if is_complete {
        return Standing::Succeeded;
    }
    let main = main_name(replica.role);
    let gone = || Failure::taken_away(replica, pod);
    match end_of(pod, main, replica.role, by_rules) {
        Some(end) if pod.was_taken_away(end.at()) && !pod.deleting => Standing::Failed(gone()),
        Some(end) if !pod.was_taken_away(end.at()) => match end {
            PodEnd::Good(_) => Standing::Succeeded,
            PodEnd::Bad(_) => Standing::Failed(Failure::of_pod(replica, pod, main)),
        },
        // A deletion is never taken back: what restarts together need not wait until its grace period is over.
        _ if pod.deleting && lost => Standing::Failed(gone()),
        _ if pod.deleting => Standing::Stopping(gone()),
        _ => match restarted_in_place(replica, pod, main) {
            // Alone it is of no use to the others.
            Some(failure) if !restarts_alone(replica.role, scope) => Standing::Failed(failure),
            _ if pod.phase == Phase::Running => Standing::Running,
            _ => Standing::Pending,
        },
    }
}

/// Whether a container of the role that its kubelet restarts is back in the job.
fn restarts_alone(role: &Role<'_>, scope: &RestartScope) -> bool {
    role.definition.survives_container_restart || *scope == RestartScope::Replica
}

/// The failure of a pod in which the kubelet restarted the framework's container, or any regular one if the pod does
/// not have that. A restart of another container is none: the training goes on. Nor is that of an init container: the
/// replica has not joined the others yet.
fn restarted_in_place(replica: &Replica<'_>, pod: &PodRecord, main: Option<&str>) -> Option<Failure> {
    let containers = counted_containers(pod, main).filter(|c| c.kind == ContainerKind::Regular);
    Failure::of_restart(replica, pod, containers)
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
