//! Faults of the cluster and of the operators' processes.
//! [`Simulation::inject`](crate::simulation::Simulation::inject) injects them.

use crate::random::Random;

/// A fault of the cluster or the operators.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterFault {
    /// The watches of this resource end, or all watches if it is `None`.
    Cut(Option<&'static str>),
    /// The API server drops its history, and all watches end.
    Compact,
    /// The watches of this resource stay open and send nothing.
    Freeze(&'static str),
    /// From now on each watch ends after this many events. `None` stops the fault.
    EndWatches(Option<u64>),
    /// All operators are killed and started again.
    Kill,
    /// The operators' clocks are set this many seconds ahead of the cluster's clock. A negative value sets them
    /// behind.
    SetClock(i64),
    /// The cluster is backed up. This is not a fault by itself.
    Backup,
    /// The cluster is restored from its backup, if there is one. Resource versions continue to rise. If they fell,
    /// and then rose beyond the newest version that an operator had received, the operator could not detect the
    /// restore.
    Restore,
    /// From now on the capacity for gangs is this many pods, or unlimited if it is `None`. Bound pods stay bound.
    Capacity(Option<usize>),
}

/// A type of cluster fault, which a seed enables or not.
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
    /// Leads to [`ClusterFault::Capacity`].
    Capacity,
}

impl ClusterFaultType {
    /// Draws the faults to inject, with their times: `at`, or `later` for a fault that reverts the first. `jobs` is
    /// the plural of a kind of job in the cluster.
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
            Self::Capacity => {
                let capacity = |random: &mut Random| Some(random.between(0, 6) as usize);
                vec![
                    (at, ClusterFault::Capacity(capacity(random))),
                    (later, ClusterFault::Capacity(capacity(random))),
                ]
            }
            Self::EndWatches => {
                let begin = ClusterFault::EndWatches(Some(*random.pick(&[1, 1, 2, 5])));
                let end = (later + 20_000, ClusterFault::EndWatches(None));
                // Half of them continue until all faults are removed at the end of the run.
                let ends = random.chance(500).then_some(end);
                [(at, begin)].into_iter().chain(ends).collect()
            }
        }
    }
}
