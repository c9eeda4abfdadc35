//! Surveys a job: determines the state of each replica from its pod and the status. No decision is made here.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::observed::{ContainerKind, NameHolder, Observed, Phase, PodRecord};
use crate::api::{ConditionType, JobStatus, MAX_COUNT};
use crate::job::{FailureTolerance, GangScheduler};
use crate::job::{PodReport, PodReports, ReplicaState, Replicas};
use crate::job::{Replica, Role, Scope, StartCondition};
use crate::validate::ValidJob;

use super::facts::Facts;
use super::failure::{Failure, FailureCause};
use super::pod_end::{PodEnd, counted_containers, end_of, main_name};
use super::recovery;

/// The observed situation of a replica.
#[derive(Clone, Debug)]
pub(super) enum Situation {
    /// The replica needs a pod and has none.
    Missing,
    /// The pod belongs to an earlier attempt and must be gone before a new pod is created.
    Outdated,
    /// The pod is being deleted, and no other replica restarts with it. The failure is the one that follows.
    Stopping(Failure),
    Pending,
    Running {
        ready: bool,
    },
    /// The replica has succeeded. Its pod may be gone.
    Succeeded,
    Failed(Failure),
}

/// A replica with its pod.
#[derive(Debug)]
pub(super) struct ObservedReplica<'a> {
    pub(super) replica: Replica<'a>,
    /// The name of its pod, also if the pod does not exist.
    pub(super) name: String,
    pub(super) pod: Option<&'a PodRecord>,
    /// The current attempt, from the status. Pods of earlier attempts are outdated.
    pub(super) attempt: u32,
    pub(super) situation: Situation,
}

#[derive(Debug)]
pub(super) struct ObservedRole<'a> {
    pub(super) role: &'a Role<'a>,
    pub(super) scope: Scope,
    /// The number of replicas that are recorded as started, counted from index 0.
    pub(super) started: u32,
    pub(super) replicas: Vec<ObservedReplica<'a>>,
}

/// The observed state of an active job, before any decision.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    pub(super) roles: Vec<ObservedRole<'a>>,
    /// The same in the form that success rules use.
    pub(super) states: Replicas<'a>,
    pub(super) in_place: RestartsInPlace,
    /// True if the job waits in the queue of a gang scheduler, so that no pods may be created yet.
    pub(super) waits: bool,
    /// The number of restarts of the whole job.
    pub(super) attempt: u32,
    pub(super) start: Timestamp,
    /// The deadline of the job, if it has one. The time before its first admission by a queue does not count.
    pub(super) deadline: Option<Timestamp>,
}

impl<'a> Survey<'a> {
    pub(super) fn replicas(&self) -> impl Iterator<Item = &ObservedReplica<'a>> {
        self.roles.iter().flat_map(|role| &role.replicas)
    }

    /// Returns true if the roles that `role` waits for have reached the state that it needs.
    pub(super) fn is_due(&self, job: &ValidJob<'_>, role: &Role<'_>) -> bool {
        let mut first = job.waits_for(role).into_iter();
        first.all(|(first, condition)| {
            let of_first = self.roles.iter().filter(|r| r.role.slug == first.slug);
            let mut replicas = of_first.flat_map(|of_role| &of_role.replicas);
            replicas.all(|replica| has_reached(&replica.situation, condition))
        })
    }

    /// Returns true if any pod of the job is missing or pending.
    pub(super) fn is_starting(&self) -> bool {
        self.replicas()
            .any(|replica| replica.pod.is_none_or(|pod| pod.phase == Phase::Pending))
    }
}

fn has_reached(situation: &Situation, condition: StartCondition) -> bool {
    match situation {
        Situation::Succeeded => true,
        Situation::Failed(_) => condition != StartCondition::Succeeded,
        Situation::Running { ready } => match condition {
            StartCondition::Running => true,
            StartCondition::Ready => *ready,
            StartCondition::Succeeded => false,
        },
        _ => false,
    }
}

/// Restarts of containers by the kubelet that count against the limits of the job: those of init containers, and of the
/// framework's container if replicas restart individually. If replicas restart together, a restart of the framework's
/// container is a failure of the replica. Restarts of other containers do not count.
#[derive(Debug, Default)]
pub(super) struct RestartsInPlace {
    /// Counted restarts by replica.
    pub(super) counted: BTreeMap<String, i32>,
    /// Number of restarts that the status does not include yet.
    pub(super) fresh: i32,
    /// The same for each role with a limit of its own.
    pub(super) fresh_of_roles: BTreeMap<String, i32>,
}

/// Returns the limit of the role's own restarts of this scope, if it has one. Restarts of the whole job have no limit of a
/// role.
pub(super) fn own_limit(job: &ValidJob<'_>, role: &Role<'_>, scope: Scope) -> Option<u32> {
    let limit = job.job.retries(role);
    limit.filter(|_| scope != Scope::Job)
}

/// Determines the situations of all replicas of a job, and its times.
pub(super) fn survey<'a>(facts: &Facts<'a>, status: &JobStatus, waits: bool) -> Survey<'a> {
    let (job, observed) = (facts.job, facts.observed);
    let roles = observe_roles(job, status, observed);
    let has_begun = !may_wait_for_first_turn(job, status);
    let waits_for_first_turn = waits && !has_begun && observed.pods.is_empty();
    let start = status.start_time.as_ref().map(|start| start.0);
    // Programs that read the status regard a job without a start time as lost after a minute. The start time is reset when
    // the queue admits the job, so that the wait does not count against its deadline.
    let start = start.filter(|_| has_begun || waits_for_first_turn);
    let start = start.unwrap_or(facts.now);
    Survey {
        states: states_of(job, &roles, observed),
        in_place: restarts_in_place(job, status, &roles),
        roles,
        waits,
        attempt: recovery::attempt_of_job(&status.recovery),
        start,
        deadline: facts.deadline(start).filter(|_| !waits_for_first_turn),
    }
}

/// Returns true if the status is that of a job which may never have been admitted by a queue: no replicas are counted, and
/// it was not resumed.
fn may_wait_for_first_turn(job: &ValidJob<'_>, status: &JobStatus) -> bool {
    let is_queued = job.topology.settings.gang_scheduler == Some(GangScheduler::Volcano);
    let was_suspended = status.condition(ConditionType::Suspended).is_some();
    is_queued && !was_suspended && status.replica_statuses.is_empty()
}

/// Returns the states of all replicas of a job in the form that success rules use.
pub(super) fn states<'a>(job: &'a ValidJob<'a>, status: &JobStatus, observed: &'a Observed) -> Replicas<'a> {
    states_of(job, &observe_roles(job, status, observed), observed)
}

fn observe_roles<'a>(
    job: &'a ValidJob<'a>,
    status: &JobStatus,
    observed: &'a Observed,
) -> Vec<ObservedRole<'a>> {
    let of_role = |role: &'a Role<'a>| {
        let scope = job.restart_scope(role);
        let completed = recovery::completed(&status.recovery, role);
        let is_done = recovery::is_done(job, &status.recovery, role);
        let started = recovery::started(&status.recovery, role);
        let may_fail = job.job.tolerance(role) == FailureTolerance::None;
        let of_replica = |replica: Replica<'a>| {
            let (name, attempt) = (replica.pod_name(), recovery::attempt(&status.recovery, &replica));
            let lost = scope != Scope::Replica && replica.index < started;
            let is_completed = completed.contains(&replica.index);
            let pod = observed.pods.get(&name).map(|pod| &**pod);
            let situation = match pod {
                Some(pod) if !is_done && recovery::is_outdated(pod.attempt, attempt) => Situation::Outdated,
                _ if is_completed => Situation::Succeeded,
                Some(pod) => observe_pod(&replica, pod, scope, lost),
                None => observe_missing(&replica, &name, attempt, observed, lost, may_fail),
            };
            ObservedReplica {
                replica,
                name,
                pod,
                attempt,
                situation,
            }
        };
        ObservedRole {
            replicas: role.all().map(of_replica).collect(),
            role,
            scope,
            started,
        }
    };
    job.topology.roles.iter().map(of_role).collect()
}

fn restarts_in_place(job: &ValidJob<'_>, status: &JobStatus, roles: &[ObservedRole<'_>]) -> RestartsInPlace {
    let mut found = RestartsInPlace::default();
    for ObservedRole {
        role,
        scope,
        replicas,
        ..
    } in roles
    {
        // Failures of the role are always tolerated, so its restarts are not counted.
        if job.job.tolerance(role) == FailureTolerance::Always {
            continue;
        }
        let alone = restarts_alone(role, *scope);
        let has_own_limit = own_limit(job, role, *scope).is_some();
        for of_replica in replicas {
            let outdated = matches!(of_replica.situation, Situation::Outdated);
            let Some(pod) = of_replica.pod.filter(|_| !outdated) else {
                continue;
            };
            let key = of_replica.replica.key();
            let known = status.recovery.in_place.get(&key).copied().unwrap_or(0).max(0);
            let counted = counted_containers(pod, main_name(role));
            let counted = counted.filter(|c| alone || c.kind == ContainerKind::Init);
            // A restart of all containers counts once. Where it is a failure of the replica, it is counted as such.
            let of_all = pod.restarts_of_all();
            let live = counted
                .map(|c| c.restarts.saturating_sub(of_all))
                .fold(0, i32::saturating_add);
            let live = live.saturating_add(if alone { of_all } else { 0 });
            let live = live.min(MAX_COUNT);
            let fresh = match has_own_limit {
                false => &mut found.fresh,
                true => found.fresh_of_roles.entry(role.name().to_owned()).or_default(),
            };
            *fresh = fresh.saturating_add(live.saturating_sub(known).max(0));
            if live.max(known) > 0 {
                found.counted.insert(key, live.max(known));
            }
        }
    }
    found
}

/// Returns the state of a replica without a pod. The end of its last pod counts if another client removed that pod, so
/// that the result does not depend on the time of the removal. A failure that the job may tolerate does not count,
/// because such a replica is created again (`may_fail` is false).
fn observe_missing(
    replica: &Replica<'_>,
    name: &str,
    attempt: u32,
    observed: &Observed,
    lost: bool,
    may_fail: bool,
) -> Situation {
    let last = observed.removed.get(name);
    let last = last.filter(|pod| !recovery::is_outdated(pod.attempt, attempt));
    match last.and_then(|pod| Some((pod, end_of(pod, replica.role)?))) {
        Some((_, PodEnd::Good)) => Situation::Succeeded,
        Some((pod, PodEnd::Bad)) if may_fail => {
            Situation::Failed(Failure::of_pod(replica, pod, main_name(replica.role)))
        }
        _ if !lost => Situation::Missing,
        _ => match observed.read.get(name) {
            // It runs where no watch shows it, or its name is taken, so that no other pod can replace it.
            Some(NameHolder::Job | NameHolder::Other) => Situation::Pending,
            Some(NameHolder::NoPod) | None => Situation::Failed(Failure::lost(replica, name)),
        },
    }
}

/// Returns the situation of a replica by its pod, which is not outdated.
fn observe_pod(replica: &Replica<'_>, pod: &PodRecord, scope: Scope, lost: bool) -> Situation {
    let main = main_name(replica.role);
    let gone = || Failure::taken_away(replica, pod);
    match end_of(pod, replica.role) {
        Some(PodEnd::Good) => Situation::Succeeded,
        Some(PodEnd::Bad) => Situation::Failed(Failure::of_pod(replica, pod, main)),
        Some(PodEnd::TakenAway) if !pod.deleting => Situation::Failed(gone()),
        // A deletion cannot be undone, so replicas that restart together need not wait for the end of its grace period.
        _ if pod.deleting && lost => Situation::Failed(gone()),
        _ if pod.deleting => Situation::Stopping(gone()),
        _ => match restarted_in_place(replica, pod, main) {
            // The other processes cannot continue with a process that was restarted.
            Some(failure) if !restarts_alone(replica.role, scope) => Situation::Failed(failure),
            _ if pod.phase == Phase::Running => Situation::Running { ready: pod.ready },
            _ => Situation::Pending,
        },
    }
}

/// Returns true if a container of the role can rejoin the job after its kubelet has restarted it.
fn restarts_alone(role: &Role<'_>, scope: Scope) -> bool {
    role.definition.survives_container_restart || scope == Scope::Replica
}

/// Returns the failure of a pod in which the kubelet restarted the framework's container, or any regular container if the
/// pod lacks that one. The restart of another container does not interrupt the training. The restart of an init container
/// happens before the replica joins the others.
fn restarted_in_place(replica: &Replica<'_>, pod: &PodRecord, main: Option<&str>) -> Option<Failure> {
    let containers = counted_containers(pod, main).filter(|c| c.kind == ContainerKind::Regular);
    Failure::of_restart(replica, pod, containers)
}

fn states_of<'a>(job: &'a ValidJob<'a>, roles: &[ObservedRole<'_>], observed: &'a Observed) -> Replicas<'a> {
    let states = Replicas::new(&job.topology, |role, index| {
        let of_role = roles.iter().find(|r| r.role.name() == role.name());
        let of_replica = of_role.and_then(|r| r.replicas.get(index as usize));
        match of_replica.map(|r| &r.situation) {
            None | Some(Situation::Missing | Situation::Outdated) => ReplicaState::Absent,
            Some(Situation::Stopping(_)) => ReplicaState::Stopping,
            Some(Situation::Pending) => ReplicaState::Pending,
            Some(Situation::Running { ready: false }) => ReplicaState::Running,
            Some(Situation::Running { ready: true }) => ReplicaState::Ready,
            Some(Situation::Succeeded) => ReplicaState::Succeeded,
            Some(Situation::Failed(failure)) if failure.cause == FailureCause::Lost => ReplicaState::Absent,
            Some(Situation::Failed(_)) => ReplicaState::Failed,
        }
    });
    states.with_pods(observed)
}

impl PodReports for Observed {
    fn report(&self, role: &Role<'_>, index: u32) -> Option<PodReport<'_>> {
        let pod = self.pods.get(&role.host(index))?;
        let main = main_name(role).and_then(|name| pod.container(name));
        let end = main.and_then(|container| container.ended.as_ref().or(container.last.as_ref()));
        let message = end.and_then(|end| end.message.as_deref());
        Some(PodReport::new(&pod.conditions, message))
    }
}
