//! The configuration of a run. Each seed enables only some of the faults, because faults hide each other.

use crate::faults::calls::CallFaultRates;
use crate::faults::{CallFault, ClusterFaultType, WatchDelay};
use crate::invariants::AllowedStaleness;
use crate::random::Random;
use crate::scenario::interventions::InterventionType;
use crate::scenario::planned_job::JobChoices;
use crate::world::job_type::JobType;
use training_job::GangScheduler;

/// The version of the mapping from seeds to runs. It is raised when seeds start to produce other runs. Seeds of
/// earlier versions can still be run.
pub const SEED_VERSION: u32 = 12;

/// The faults and interventions that a run may have.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The seed of all random choices.
    pub seed: u64,
    /// The seed version, which selects the mapping from the seed to the run.
    pub seed_version: u32,
    /// The number of jobs.
    pub jobs: u64,
    /// The types of jobs to draw from.
    pub job_types: &'static [JobType],
    /// True if some of the jobs have failure and success policies.
    pub policies: bool,
    /// True if some of the jobs are compact.
    pub compact_jobs: bool,
    /// The number of seconds with interventions and faults.
    pub seconds: u64,
    /// The faults of calls and their rates.
    pub calls: CallFaultRates,
    /// The delays of watch events, if any.
    pub watch_delay: Option<WatchDelay>,
    /// The number of pods with a fault, per thousand.
    pub pod_fault_rate: u64,
    /// The types of interventions to choose from.
    pub interventions: Vec<InterventionType>,
    /// The number of interventions to draw.
    pub intervention_count: u64,
    /// True if a second operator runs beside the first, without leader election.
    pub two_operators: bool,
    /// The number of jobs that an operator reconciles concurrently.
    pub concurrency: usize,
    /// True if the clocks of nodes differ from that of the cluster by up to five minutes.
    pub node_clocks_differ: bool,
    /// The gang scheduler of the cluster, if any.
    pub gang_scheduler: Option<GangScheduler>,
}

impl RunConfig {
    /// Returns the configuration of a seed of the current version.
    pub fn from_seed(seed: u64) -> Self {
        Self::from_seed_of_version(seed, SEED_VERSION)
    }

    /// Returns the configuration of a seed of this version.
    pub fn from_seed_of_version(seed: u64, version: u32) -> Self {
        let mut random = Random::about(seed, "settings", u64::from(version));
        let without_faults = random.chance(100);
        let faults = CallFault::all().iter();
        let mut faults: Vec<CallFault> = faults.filter(|_| random.chance(300)).cloned().collect();
        if random.chance(60) {
            faults.push(CallFault::Stale(random.between(1, 40)));
        }
        let interventions = InterventionType::all_of_version(version).iter().copied();
        let interventions: Vec<_> = interventions.filter(|_| random.chance(350)).collect();
        let intervention_count = if interventions.is_empty() {
            0
        } else {
            *random.pick(&[0, 2, 4, 8, 16])
        };
        let ends_watches = interventions.contains(&InterventionType::Fault(ClusterFaultType::EndWatches));
        let watch_delay = random.chance(350).then(|| WatchDelay {
            seed,
            longest: *random.pick(&[20, 500, 5_000, 30_000]),
            duplicates: *random.pick(&[0, 100]),
        });
        let rate = |random: &mut Random, rates: &[u64]| {
            if without_faults { 0 } else { *random.pick(rates) }
        };
        // The order of the draws is part of the seed version.
        Self {
            seed,
            seed_version: version,
            jobs: random.between(1, 3),
            job_types: match (random.chance(250), version) {
                (false, _) => JobType::MXJOBS,
                (true, ..6) => JobType::THREE_KINDS,
                (true, ..11) => JobType::ALL_KINDS,
                (true, _) => JobType::ALL_KINDS_AND_STEPS,
            },
            seconds: *random.pick(&[30, 60, 120]),
            calls: CallFaultRates {
                fault_rate: rate(&mut random, &[0, 10, 50, 150, 300]),
                faults,
                slow_rate: rate(&mut random, &[0, 0, 100, 500]),
                death_rate: rate(&mut random, &[0, 0, 10, 50]),
            },
            // Each new watch would add its own delay: after a hundred events, the total would be a hundred times as
            // long.
            watch_delay: watch_delay.filter(|_| !without_faults && !ends_watches),
            pod_fault_rate: *random.pick(&[0, 100, 300]),
            interventions,
            intervention_count,
            two_operators: random.chance(100) && !without_faults,
            concurrency: *random.pick(&[1, 2, 16]),
            compact_jobs: random.chance(250) && version >= 5,
            policies: random.chance(250) && version >= 6,
            gang_scheduler: match random.below(8) {
                0 if version >= 7 => Some(GangScheduler::Volcano),
                1 if version >= 7 => GangScheduler::named("gangs"),
                _ => None,
            },
            node_clocks_differ: version >= 10 && random.chance(300),
        }
    }

    /// Returns a configuration without faults.
    pub fn without_faults() -> Self {
        Self {
            seed: 0,
            seed_version: SEED_VERSION,
            jobs: 0,
            job_types: JobType::MXJOBS,
            policies: false,
            compact_jobs: false,
            seconds: 0,
            calls: CallFaultRates::default(),
            watch_delay: None,
            pod_fault_rate: 0,
            interventions: Vec::new(),
            intervention_count: 0,
            two_operators: false,
            concurrency: 16,
            gang_scheduler: None,
            node_clocks_differ: false,
        }
    }

    /// Returns the properties that jobs may have.
    pub fn job_choices(&self) -> JobChoices {
        JobChoices {
            job_types: self.job_types,
            compact: self.compact_jobs,
            progress: self.seed_version >= 12,
            policies: self.policies,
            gangs: self.gang_scheduler.is_some(),
        }
    }

    /// Returns the allowed age of the state that operators act on.
    pub fn staleness(&self) -> AllowedStaleness {
        let has_call_fault = |is_it: fn(&CallFault) -> bool| self.calls.faults.iter().any(is_it);
        let has_cluster_fault = |fault| self.interventions.contains(&InterventionType::Fault(fault));
        let delay = self.watch_delay.as_ref().map_or(0, |delay| delay.longest);
        let restores = has_cluster_fault(ClusterFaultType::Restore);
        let network_is_good = self.calls.keep_answers() && self.watch_delay.is_none();
        let of_others = if network_is_good && !restores && !has_cluster_fault(ClusterFaultType::Freeze) {
            let cuts =
                has_cluster_fault(ClusterFaultType::Cut) || has_cluster_fault(ClusterFaultType::Compact);
            // A watch that ends right after its start is retried after up to 40 s.
            2_000 + if cuts { 60_000 } else { 0 }
        } else if has_cluster_fault(ClusterFaultType::EndWatches) {
            // Each event may cost a call that has its own fault.
            3_600_000
        } else {
            // A reconcile has up to three rounds of calls, each with its timeout. A silent watch is abandoned after
            // about two minutes.
            3 * 31_000 + 170_000 + delay
        };
        let own_is_stale = self.two_operators
            || has_call_fault(|fault| matches!(fault, CallFault::Stale(_) | CallFault::Late(_)))
            || restores;
        AllowedStaleness {
            of_others,
            of_own: if own_is_stale { of_others } else { 0 },
        }
    }
}
