//! Scenarios: the complete inputs of runs.

pub mod config;
pub mod interventions;
pub mod planned_job;
pub mod users;
pub mod workloads;

use std::collections::BTreeMap;

use crate::faults::{CallFault, CallSite, PodFate};
use crate::random::Random;
use crate::scenario::config::RunConfig;
use crate::scenario::interventions::ScheduledIntervention;
use crate::scenario::planned_job::PlannedJob;
use crate::scenario::users::UserAction;

/// The complete input of a run. The same scenario gives the same history, byte for byte.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The faults and interventions that may occur.
    pub config: RunConfig,
    /// The jobs.
    pub jobs: Vec<PlannedJob>,
    /// The interventions, in order of time.
    pub interventions: Vec<ScheduledIntervention>,
    /// The faults of calls. If `None`, they are drawn from the seed.
    pub call_faults: Option<BTreeMap<CallSite, CallFault>>,
    /// The fates of pods by name and attempt. If `None`, they are drawn from the seed.
    pub pod_fates: Option<fn(&str, u32) -> PodFate>,
}

impl Scenario {
    /// Creates the scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self::from_config(RunConfig::from_seed(seed))
    }

    /// Draws a scenario from the seed of this configuration.
    pub fn from_config(config: RunConfig) -> Self {
        let jobs = draw_jobs(&config);
        let interventions = draw_interventions(&config, &jobs);
        Self {
            config,
            jobs,
            interventions,
            call_faults: None,
            pod_fates: None,
        }
    }
}

fn draw_jobs(config: &RunConfig) -> Vec<PlannedJob> {
    let mut random = Random::about(config.seed, "jobs", 0);
    let choices = config.job_choices();
    (0..config.jobs)
        .map(|number| PlannedJob::draw(&mut random, number, &choices))
        .collect()
}

/// Schedules the creation of each job, and draws further interventions from the types of the configuration.
fn draw_interventions(config: &RunConfig, jobs: &[PlannedJob]) -> Vec<ScheduledIntervention> {
    let mut random = Random::about(config.seed, "acts", 0);
    let mut drawn = Vec::new();
    for number in 0..jobs.len() {
        let at = random.between(0, 3) * random.between(0, 2_000);
        drawn.push(ScheduledIntervention::user(at, UserAction::Create(number)));
    }
    for _ in 0..config.intervention_count {
        let at = random.between(1, config.seconds * 1_000);
        let intervention = *random.pick(&config.interventions);
        drawn.extend(intervention.draw(&mut random, at, jobs));
    }
    drawn.sort_by_key(|scheduled| scheduled.at);
    drawn
}
