//! Interventions in a cluster while its jobs run: user actions and cluster faults.

use std::fmt;

use crate::faults::{ClusterFault, ClusterFaultType};
use crate::random::Random;
use crate::scenario::planned_job::PlannedJob;
use crate::scenario::users::{Target, UserAction, UserActionType};

/// An intervention in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Intervention {
    /// An action of a user.
    User(UserAction),
    /// A fault of the cluster.
    Fault(ClusterFault),
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Histories contain these texts, which must stay the same for a seed.
        match self {
            Self::User(action) => write!(f, "{action:?}"),
            Self::Fault(fault) => write!(f, "{fault:?}"),
        }
    }
}

/// An intervention and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledIntervention {
    /// The time, in milliseconds since the start.
    pub at: u64,
    /// The intervention.
    pub intervention: Intervention,
}

impl ScheduledIntervention {
    /// Creates a user action at this time.
    pub fn user(at: u64, action: UserAction) -> Self {
        let intervention = Intervention::User(action);
        Self { at, intervention }
    }

    /// Creates a cluster fault at this time.
    pub fn fault(at: u64, fault: ClusterFault) -> Self {
        let intervention = Intervention::Fault(fault);
        Self { at, intervention }
    }
}

/// A type of intervention, which a seed enables or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterventionType {
    /// Actions of users.
    User(UserActionType),
    /// Cluster faults.
    Fault(ClusterFaultType),
}

impl InterventionType {
    /// All types. Each seed version uses a prefix of this list, so new types go to the end.
    const ALL: [Self; 27] = [
        Self::User(UserActionType::Scale),
        Self::User(UserActionType::Suspend),
        Self::User(UserActionType::Policy),
        Self::User(UserActionType::DeletePod),
        Self::User(UserActionType::DeleteJob),
        Self::User(UserActionType::Recreate),
        Self::User(UserActionType::Break),
        Self::User(UserActionType::Relabel),
        Self::User(UserActionType::Orphan),
        Self::User(UserActionType::Foreign),
        Self::User(UserActionType::Touch),
        Self::Fault(ClusterFaultType::Cut),
        Self::Fault(ClusterFaultType::Compact),
        Self::Fault(ClusterFaultType::Freeze),
        Self::Fault(ClusterFaultType::Kill),
        Self::User(UserActionType::EditStatus),
        Self::Fault(ClusterFaultType::SetClock),
        Self::Fault(ClusterFaultType::Restore),
        Self::User(UserActionType::Quota),
        Self::Fault(ClusterFaultType::EndWatches),
        Self::User(UserActionType::DeleteOthers),
        Self::User(UserActionType::SpoilObject),
        Self::User(UserActionType::Queue),
        Self::User(UserActionType::SpoilGroup),
        Self::Fault(ClusterFaultType::Capacity),
        Self::User(UserActionType::Vandalize),
        Self::User(UserActionType::SpoilStatus),
    ];

    /// Returns the types that seeds of this version draw from.
    pub fn all_of_version(version: u32) -> &'static [Self] {
        match version {
            1 => &Self::ALL[..15],
            2 => &Self::ALL[..18],
            3 => &Self::ALL[..19],
            4 => &Self::ALL[..20],
            5 => &Self::ALL[..21],
            6 => &Self::ALL[..22],
            7 | 8 => &Self::ALL[..25],
            _ => &Self::ALL,
        }
    }

    /// Draws one or two interventions, the first at this time, in a run with these jobs.
    pub fn draw(self, random: &mut Random, at: u64, jobs: &[PlannedJob]) -> Vec<ScheduledIntervention> {
        let target = Target::draw(random, jobs);
        let later = at + random.between(0, 3) * random.between(0, 8_000);
        match self {
            Self::User(action) => {
                let actions = action.draw(random, at, later, target);
                let scheduled = |(at, action)| ScheduledIntervention::user(at, action);
                actions.into_iter().map(scheduled).collect()
            }
            Self::Fault(fault) => {
                let faults = fault.draw(random, at, later, target.job.job_type.plural());
                let scheduled = |(at, fault)| ScheduledIntervention::fault(at, fault);
                faults.into_iter().map(scheduled).collect()
            }
        }
    }
}
