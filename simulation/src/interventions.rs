//! What is done to a cluster while its jobs run: actions of users, and cluster faults.

use std::fmt;

use crate::faults::{ClusterFault, ClusterFaultType};
use crate::planned_job::PlannedJob;
use crate::random::Random;
use crate::users::{Target, UserAction, UserActionType};

/// Something that is done to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Intervention {
    /// A user does something.
    User(UserAction),
    /// Something goes wrong.
    Fault(ClusterFault),
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Histories show these texts, and must stay the same for a seed.
        match self {
            Self::User(action) => write!(f, "{action:?}"),
            Self::Fault(fault) => write!(f, "{fault:?}"),
        }
    }
}

/// An intervention and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledIntervention {
    /// When, in milliseconds since the beginning.
    pub at: u64,
    /// What is done.
    pub intervention: Intervention,
}

impl ScheduledIntervention {
    /// An action of a user at this time.
    pub fn user(at: u64, action: UserAction) -> Self {
        let intervention = Intervention::User(action);
        Self { at, intervention }
    }

    /// A cluster fault at this time.
    pub fn fault(at: u64, fault: ClusterFault) -> Self {
        let intervention = Intervention::Fault(fault);
        Self { at, intervention }
    }
}

/// A type of intervention, which a seed has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterventionType {
    /// Actions of users.
    User(UserActionType),
    /// Cluster faults.
    Fault(ClusterFaultType),
}

impl InterventionType {
    /// All of them. A version of what seeds mean has the first so many: new ones go to the end.
    const ALL: [Self; 25] = [
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
        Self::Fault(ClusterFaultType::Room),
    ];

    /// Those that seeds of this version draw from.
    pub fn all_of_version(version: u32) -> &'static [Self] {
        match version {
            1 => &Self::ALL[..15],
            2 => &Self::ALL[..18],
            3 => &Self::ALL[..19],
            4 => &Self::ALL[..20],
            5 => &Self::ALL[..21],
            6 => &Self::ALL[..22],
            _ => &Self::ALL,
        }
    }

    /// One or two interventions, the first at this time, in a run with these jobs.
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
