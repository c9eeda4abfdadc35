//! What a job's replicas are doing, as a framework's success rule sees it.

use crate::api::{JobSuccessPolicy, SuccessOperator};

use super::topology::{Replica, Role, Topology};

/// The state of one replica in its current attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaState {
    /// It has no pod, or only one of an earlier attempt or one that is to be restarted.
    Absent,
    /// Its pod has not started.
    Pending,
    /// Its pod runs.
    Running,
    /// Its pod is being deleted.
    Stopping,
    /// It has ended well, and stays so even if its pod is gone.
    Succeeded,
    /// It has ended badly, and the job goes on without it.
    Failed,
}

/// Whether a job goes on without a replica that has failed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureTolerance {
    /// The job fails.
    None,
    /// It goes on as long as the role has another replica that has not failed.
    WhileOthersRemain,
    /// It goes on: failures of the role never matter. A replica that its restart policy restarts is restarted alone,
    /// which neither counts against the job's backoff limit nor shows in its conditions; after as many restarts of its
    /// own as that limit it stays failed.
    Always,
}

/// The states of all replicas of a job.
#[derive(Debug)]
pub struct Replicas<'a> {
    roles: Vec<RoleReplicas<'a>>,
}

/// The states of a role's replicas.
#[derive(Debug)]
#[non_exhaustive]
pub struct RoleReplicas<'a> {
    /// The role.
    pub role: &'a Role<'a>,
    /// A state for each replica, by index.
    pub states: Vec<ReplicaState>,
}

/// What the replicas' states mean for their job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The replicas that decide do not run yet.
    Waiting,
    /// They run.
    Running,
    /// The job has succeeded.
    Succeeded,
}

impl<'a> Replicas<'a> {
    /// The replicas of `topology`, each in the state that `state` gives for its role and index.
    pub fn new(topology: &'a Topology<'a>, state: impl Fn(&Role<'a>, u32) -> ReplicaState) -> Self {
        let roles = topology
            .roles
            .iter()
            .map(|role| RoleReplicas {
                role,
                states: (0..role.replicas).map(|i| state(role, i)).collect(),
            })
            .collect();
        Self { roles }
    }

    /// Sets the state of a replica.
    pub(crate) fn set(&mut self, replica: Replica<'_>, state: ReplicaState) {
        let role = self
            .roles
            .iter_mut()
            .find(|r| r.role.definition == replica.role.definition);
        let index = usize::try_from(replica.index).unwrap_or(usize::MAX);
        if let Some(place) = role.and_then(|r| r.states.get_mut(index)) {
            *place = state;
        }
    }

    /// The roles, in the framework's order.
    pub fn roles(&self) -> &[RoleReplicas<'a>] {
        &self.roles
    }

    /// The replicas of a role, if the job has any.
    pub fn role(&self, name: &str) -> Option<&RoleReplicas<'a>> {
        self.roles
            .iter()
            .find(|r| r.role.name() == name && !r.states.is_empty())
    }

    /// The outcome if all replicas decide: the job has succeeded when all have.
    pub fn when_all_succeed(&self) -> Outcome {
        Self::outcome(self.roles.iter())
    }

    /// The outcome if the replicas of these roles decide: it runs when any of them does, and has
    /// succeeded when all have. Roles that the job does not have do not count.
    pub fn decided_by(&self, roles: &[&str]) -> Outcome {
        Self::outcome(self.roles.iter().filter(|r| roles.contains(&r.role.name())))
    }

    /// The outcome by a job's own policy; `of_kind` is what its kind makes of it, and says whether it runs.
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
            running += role.count(ReplicaState::Running);
            succeeded += role.count(ReplicaState::Succeeded);
        }
        // A job is never done because nobody had to do anything.
        match (total, running) {
            (1.., _) if succeeded == total => Outcome::Succeeded,
            (_, 1..) => Outcome::Running,
            _ => Outcome::Waiting,
        }
    }
}

impl RoleReplicas<'_> {
    /// How many replicas of the role are in this state.
    pub fn count(&self, state: ReplicaState) -> usize {
        self.states.iter().filter(|&&s| s == state).count()
    }
}
