//! Faults of the cluster and of the operators' processes.
//! [`Simulation::inject`](crate::simulation::Simulation::inject) injects them.

use crate::random::Random;

/// Something that goes wrong with the cluster or the operators.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterFault {
    /// The watches of this resource, or all watches, end.
    Cut(Option<&'static str>),
    /// The API server forgets its history, and all watches end.
    Compact,
    /// The watches of this resource stay open and fall silent.
    Freeze(&'static str),
    /// From now on each watch ends as soon as it has told so many events; `None`: no more.
    EndWatches(Option<u64>),
    /// All operators are killed and started again.
    Kill,
    /// The operators' clocks are set so many seconds ahead of the cluster's; negative is behind.
    SetClock(i64),
    /// The cluster is backed up. Nothing goes wrong yet.
    Backup,
    /// The cluster is set back to its backup, if there is one. Resource versions go on: if they went back, and then
    /// beyond the newest that an operator knew before it asked, nobody could notice.
    Restore,
    /// From now on gangs have room for so many pods; `None`: for any number. Pods that have a place keep it.
    Room(Option<usize>),
}

/// A type of cluster fault, which a seed has or has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterFaultType {
    /// Leads to [`ClusterFault::Cut`].
    Cut,
    /// Leads to [`ClusterFault::Compact`].
    Compact,
    /// Leads to [`ClusterFault::Freeze`].
    Freeze,
    /// Leads to [`ClusterFault::Kill`].
    Kill,
    /// Leads to [`ClusterFault::SetClock`].
    SetClock,
    /// Leads to [`ClusterFault::Backup`] and [`ClusterFault::Restore`].
    Restore,
    /// Leads to [`ClusterFault::EndWatches`].
    EndWatches,
    /// Leads to [`ClusterFault::Room`].
    Room,
}

impl ClusterFaultType {
    /// The faults to inject, with their times: `at`, or `later` for what undoes the first. `jobs` is the plural of a
    /// kind of job that the cluster has.
    pub fn draw(
        self,
        random: &mut Random,
        at: u64,
        later: u64,
        jobs: &'static str,
    ) -> Vec<(u64, ClusterFault)> {
        match self {
            Self::Cut => {
                let resource = *random.pick(&[None, Some("pods"), Some(jobs), Some("services")]);
                vec![(at, ClusterFault::Cut(resource))]
            }
            Self::Compact => vec![(at, ClusterFault::Compact)],
            Self::Freeze => {
                let resource = *random.pick(&["pods", jobs, "services"]);
                vec![(at, ClusterFault::Freeze(resource))]
            }
            Self::Kill => vec![(at, ClusterFault::Kill)],
            Self::SetClock => {
                let ahead = random.between(0, 1_200) as i64 - 600;
                vec![(at, ClusterFault::SetClock(ahead))]
            }
            Self::Restore => vec![(at, ClusterFault::Backup), (later, ClusterFault::Restore)],
            Self::Room => {
                let room = |random: &mut Random| Some(random.between(0, 6) as usize);
                vec![
                    (at, ClusterFault::Room(room(random))),
                    (later, ClusterFault::Room(room(random))),
                ]
            }
            Self::EndWatches => {
                let begin = ClusterFault::EndWatches(Some(*random.pick(&[1, 1, 2, 5])));
                let end = (later + 20_000, ClusterFault::EndWatches(None));
                // Half of them go on until all is well again.
                let ends = random.chance(500).then_some(end);
                [(at, begin)].into_iter().chain(ends).collect()
            }
        }
    }
}
