//! Shrinks a scenario that violates an invariant, while it still violates the same invariant.

use std::collections::BTreeMap;

use crate::modes::run::run;
use crate::scenario::Scenario;
use crate::scenario::interventions::{Intervention, ScheduledIntervention};
use crate::world::job_type::JobType;

/// The maximum number of runs of one search.
const MAX_RUNS: u32 = 600;

/// Returns the smallest scenario found whose first violated invariant is `id`, like that of `scenario`. Returns
/// `None` if `scenario` does not violate it when its faults are listed instead of drawn.
pub fn shrink(scenario: &Scenario, id: &str) -> Option<Scenario> {
    let faults = run(scenario).call_faults;
    let mut search = Search { id, runs: 0 };
    let mut best = Scenario {
        call_faults: Some(faults),
        ..scenario.clone()
    };
    if !search.violates(&best) {
        return None;
    }
    loop {
        let before = size(&best);
        best = search.with_fewer_jobs(best);
        best = search.with_fewer_interventions(best);
        best = search.with_fewer_faults(best);
        best = search.with_calmer_config(best);
        if size(&best) == before || search.runs >= MAX_RUNS {
            return Some(best);
        }
    }
}

fn size(scenario: &Scenario) -> usize {
    scenario.interventions.len() + scenario.call_faults.as_ref().map_or(0, BTreeMap::len)
}

struct Search<'a> {
    id: &'a str,
    runs: u32,
}

impl Search<'_> {
    fn violates(&mut self, scenario: &Scenario) -> bool {
        self.runs += 1;
        self.runs <= MAX_RUNS && run(scenario).violations.first().is_some_and(|v| v.id == self.id)
    }

    /// Removes all interventions of one job at a time.
    fn with_fewer_jobs(&mut self, mut best: Scenario) -> Scenario {
        for number in 0..best.jobs.len() {
            let mut fewer = best.clone();
            fewer
                .interventions
                .retain(|scheduled| job(scheduled) != Some(number));
            if fewer.interventions.len() < best.interventions.len() && self.violates(&fewer) {
                best = fewer;
            }
        }
        best
    }

    fn with_fewer_interventions(&mut self, best: Scenario) -> Scenario {
        let interventions = minimize(best.interventions.clone(), |interventions| {
            let interventions = interventions.to_vec();
            self.violates(&Scenario {
                interventions,
                ..best.clone()
            })
        });
        Scenario {
            interventions,
            ..best
        }
    }

    fn with_fewer_faults(&mut self, best: Scenario) -> Scenario {
        let faults: Vec<_> = best.call_faults.clone().unwrap_or_default().into_iter().collect();
        let faults = minimize(faults, |faults| {
            let call_faults = Some(faults.iter().cloned().collect());
            self.violates(&Scenario {
                call_faults,
                ..best.clone()
            })
        });
        Scenario {
            call_faults: Some(faults.into_iter().collect()),
            ..best
        }
    }

    /// Disables one feature of the configuration at a time.
    fn with_calmer_config(&mut self, mut best: Scenario) -> Scenario {
        let calmer: [fn(&mut Scenario); 5] = [
            |s| s.config.watch_delay = None,
            |s| s.config.pod_fault_rate = 0,
            |s| s.config.two_operators = false,
            |s| s.config.concurrency = 1,
            |s| s.config.job_types = JobType::MXJOBS,
        ];
        for calm in calmer {
            let mut other = best.clone();
            calm(&mut other);
            if self.violates(&other) {
                best = other;
            }
        }
        best
    }
}

/// Returns the job that an intervention affects.
fn job(scheduled: &ScheduledIntervention) -> Option<usize> {
    match &scheduled.intervention {
        Intervention::User(action) => action.job(),
        Intervention::Fault(_) => None,
    }
}

/// Returns a part of `items` that is still `enough`, but not if any one item is removed. Tries to remove halves
/// first.
fn minimize<T: Clone>(mut items: Vec<T>, mut enough: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut chunk = items.len();
    while chunk > 0 {
        let mut at = 0;
        while at < items.len() {
            let end = (at + chunk).min(items.len());
            let rest: Vec<T> = [&items[..at], &items[end..]].concat();
            if enough(&rest) {
                items = rest;
            } else {
                at = end;
            }
        }
        chunk /= 2;
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_needed_items_are_left() {
        let items: Vec<u32> = (0..100).collect();
        let mut tries = 0;
        let left = minimize(items, |some| {
            tries += 1;
            some.contains(&17) && some.contains(&71)
        });
        assert_eq!(left, [17, 71]);
        assert!(tries < 60, "{tries}");
    }
}
