//! The states of a job's replicas, from which a framework determines the state of the job.

use crate::api::{JobSuccessPolicy, SuccessOperator};

use super::topology::{Replica, Role, Topology};

/// The state of one replica in its current attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaState {
    /// The replica has no pod, or its pod belongs to an earlier attempt or is to be restarted.
    Absent,
    /// The pod has not started.
    Pending,
    /// The pod runs, and is not ready.
    Running,
    /// The pod runs and is ready: the readiness probes of its containers succeed, or it has none.
    Ready,
    /// The pod is being deleted.
    Stopping,
    /// The replica has succeeded. The state remains when the pod is gone.
    Succeeded,
    /// The replica has failed, and the job continues without it.
    Failed,
}

/// The tolerance of a job for replicas whose failure is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureTolerance {
    /// The job fails.
    None,
    /// The job continues while the role has another replica that has not failed.
    WhileOthersRemain,
    /// The job continues whatever fails. A replica whose restart policy restarts it is restarted alone. The restart
    /// does not count against the job's backoff limit and is not in its conditions. After as many restarts of its own
    /// as that limit, the replica stays failed.
    Always,
}

/// The states of all replicas of a job.
#[derive(Clone, Debug)]
pub struct Replicas<'a> {
    roles: Vec<RoleReplicas<'a>>,
}

/// The states of a role's replicas.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RoleReplicas<'a> {
    /// The role of the replicas.
    pub role: &'a Role<'a>,
    /// A state for each replica, by index.
    pub states: Vec<ReplicaState>,
    /// Unset where no cluster is observed, as for `render`.
    pods: Option<&'a dyn PodReports>,
}

/// The report of a replica's pod: what a hook may see of it beyond the state of the replica.
#[derive(Clone, Copy, Debug)]
pub struct PodReport<'a> {
    conditions: &'a [(String, String)],
    termination_message: Option<&'a str>,
}

impl<'a> PodReport<'a> {
    pub(crate) fn new(conditions: &'a [(String, String)], termination_message: Option<&'a str>) -> Self {
        Self {
            conditions,
            termination_message,
        }
    }

    /// Returns the status of the pod's condition of this type, such as `True`. The kubelet's own conditions, such as
    /// `Ready`, are left out, because the state of the replica has the same information.
    pub fn condition(&self, type_: &str) -> Option<&'a str> {
        let mut conditions = self.conditions.iter();
        conditions.find_map(|(t, status)| (t == type_).then_some(&**status))
    }

    /// Returns what the framework's container wrote to `/dev/termination-log`, if it has ended: at most the last 2,048
    /// bytes. After a restart by the kubelet, it is the message of the process before.
    pub fn termination_message(&self) -> Option<&'a str> {
        self.termination_message
    }
}

/// The pods of a job, as the plan has observed them.
pub(crate) trait PodReports: std::fmt::Debug {
    /// Returns the report of a replica's pod, if it exists.
    fn report(&self, role: &Role<'_>, index: u32) -> Option<PodReport<'_>>;
}

/// The state of a job, as determined by the states of its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The deciding replicas do not run yet.
    Waiting,
    /// The deciding replicas run.
    Running,
    /// The job has succeeded.
    Succeeded,
}

impl<'a> Replicas<'a> {
    /// Creates the replicas of `topology`. `state` returns the state for a role and an index.
    pub fn new(topology: &'a Topology<'a>, state: impl Fn(&Role<'a>, u32) -> ReplicaState) -> Self {
        let roles = topology
            .roles
            .iter()
            .map(|role| RoleReplicas {
                role,
                states: (0..role.replicas).map(|i| state(role, i)).collect(),
                pods: None,
            })
            .collect();
        Self { roles }
    }

    /// Adds the reports of the pods.
    pub(crate) fn with_pods(mut self, pods: &'a dyn PodReports) -> Self {
        self.roles.iter_mut().for_each(|role| role.pods = Some(pods));
        self
    }

    /// Sets the state of a replica.
    pub(crate) fn set(&mut self, replica: Replica<'_>, state: ReplicaState) {
        let role = self.roles.iter_mut().find(|r| r.role.slug == replica.role.slug);
        let index = usize::try_from(replica.index).unwrap_or(usize::MAX);
        if let Some(place) = role.and_then(|r| r.states.get_mut(index)) {
            *place = state;
        }
    }

    /// Returns the roles, in the framework's order.
    pub fn roles(&self) -> &[RoleReplicas<'a>] {
        &self.roles
    }

    /// Returns the replicas of the role of this name, if the job has any.
    pub fn role(&self, name: &str) -> Option<&RoleReplicas<'a>> {
        self.roles
            .iter()
            .find(|r| r.role.name() == name && !r.states.is_empty())
    }

    /// Returns the outcome if all replicas decide: the job has succeeded when all replicas have.
    pub fn when_all_succeed(&self) -> Outcome {
        Self::outcome(self.roles.iter())
    }

    /// Returns the outcome if the replicas of these classes decide: the job runs when any of them does, and has
    /// succeeded when all of them have. Classes without a role in the job are ignored.
    pub fn decided_by(&self, classes: &[&str]) -> Outcome {
        let deciding = self.roles.iter().filter(|r| classes.contains(&r.role.class()));
        Self::outcome(deciding)
    }

    /// Returns the outcome by the job's own success policy. `of_kind` is the outcome by its kind, which determines
    /// whether the job runs.
    pub(crate) fn decided_by_policy(&self, policy: &JobSuccessPolicy, of_kind: Outcome) -> Outcome {
        let is_named = |role: &str| policy.roles.iter().any(|own| own.eq_ignore_ascii_case(role));
        let decides = |r: &&RoleReplicas<'_>| policy.roles.is_empty() || is_named(r.role.name());
        let of_roles = Self::outcome(self.roles.iter().filter(decides));
        let mut deciding = self.roles.iter().filter(decides);
        let any = deciding.any(|role| role.count(ReplicaState::Succeeded) > 0);
        match (of_roles, of_kind) {
            (Outcome::Succeeded, _) => Outcome::Succeeded,
            _ if any && policy.operator == Some(SuccessOperator::Any) => Outcome::Succeeded,
            (Outcome::Waiting, Outcome::Waiting) => Outcome::Waiting,
            _ => Outcome::Running,
        }
    }

    fn outcome<'r>(deciding: impl Iterator<Item = &'r RoleReplicas<'a>>) -> Outcome
    where
        'a: 'r,
    {
        let (mut total, mut running, mut succeeded) = (0, 0, 0);
        for role in deciding {
            total += role.states.len();
            running += role.running();
            succeeded += role.count(ReplicaState::Succeeded);
        }
        // A job without deciding replicas never succeeds.
        match (total, running) {
            (1.., _) if succeeded == total => Outcome::Succeeded,
            (_, 1..) => Outcome::Running,
            _ => Outcome::Waiting,
        }
    }
}

impl ReplicaState {
    /// Returns true if the pod runs, ready or not.
    pub fn runs(self) -> bool {
        matches!(self, Self::Running | Self::Ready)
    }
}

impl RoleReplicas<'_> {
    /// Returns the report of the pod of the replica with this index. A replica that is
    /// [`Absent`](ReplicaState::Absent) has none, nor has one whose pod was deleted after its end.
    pub fn pod(&self, index: u32) -> Option<PodReport<'_>> {
        let state = self.states.get(usize::try_from(index).ok()?)?;
        match state {
            ReplicaState::Absent => None,
            _ => self.pods?.report(self.role, index),
        }
    }

    /// Returns the number of the role's replicas whose pods run, ready or not.
    pub fn running(&self) -> usize {
        self.states.iter().filter(|state| state.runs()).count()
    }

    /// Returns the number of the role's replicas in this state.
    pub fn count(&self, state: ReplicaState) -> usize {
        self.states.iter().filter(|&&s| s == state).count()
    }
}
