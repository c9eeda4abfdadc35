//! Makes a scenario that breaks something smaller, as long as it breaks the same.

use std::collections::BTreeMap;

use crate::run::{Scenario, run};
use crate::users::{Act, Deed};

/// The most runs that one search may take.
const MOST_RUNS: u32 = 600;

/// The smallest scenario that was found to break the invariant `id` as `scenario` does; `None` if it
/// breaks nothing any more once its faults are listed instead of drawn.
pub fn shrink(scenario: &Scenario, id: &str) -> Option<Scenario> {
    let met = run(scenario).met;
    let mut search = Search { id, runs: 0 };
    let mut best = Scenario {
        faults: Some(met),
        ..scenario.clone()
    };
    if !search.breaks(&best) {
        return None;
    }
    loop {
        let before = size(&best);
        best = search.jobs(best);
        best = search.acts(best);
        best = search.faults(best);
        best = search.settings(best);
        if size(&best) == before || search.runs >= MOST_RUNS {
            return Some(best);
        }
    }
}

fn size(scenario: &Scenario) -> usize {
    scenario.acts.len() + scenario.faults.as_ref().map_or(0, BTreeMap::len)
}

struct Search<'a> {
    id: &'a str,
    runs: u32,
}

impl Search<'_> {
    fn breaks(&mut self, scenario: &Scenario) -> bool {
        self.runs += 1;
        self.runs <= MOST_RUNS && run(scenario).violations.first().is_some_and(|v| v.id == self.id)
    }

    /// Without all that is done to one of the jobs.
    fn jobs(&mut self, mut best: Scenario) -> Scenario {
        for number in 0..best.jobs.len() {
            let mut fewer = best.clone();
            fewer.acts.retain(|act| job(act) != Some(number));
            if fewer.acts.len() < best.acts.len() && self.breaks(&fewer) {
                best = fewer;
            }
        }
        best
    }

    fn acts(&mut self, best: Scenario) -> Scenario {
        let acts = fewer(best.acts.clone(), |acts| {
            let acts = acts.to_vec();
            self.breaks(&Scenario { acts, ..best.clone() })
        });
        Scenario { acts, ..best }
    }

    fn faults(&mut self, best: Scenario) -> Scenario {
        let faults: Vec<_> = best.faults.clone().unwrap_or_default().into_iter().collect();
        let faults = fewer(faults, |faults| {
            let faults = Some(faults.iter().cloned().collect());
            self.breaks(&Scenario {
                faults,
                ..best.clone()
            })
        });
        Scenario {
            faults: Some(faults.into_iter().collect()),
            ..best
        }
    }

    /// With calmer settings.
    fn settings(&mut self, mut best: Scenario) -> Scenario {
        let calmer: [fn(&mut Scenario); 5] = [
            |s| s.settings.lag = None,
            |s| s.settings.troubles = 0,
            |s| s.settings.two_leaders = false,
            |s| s.settings.concurrency = 1,
            |s| s.settings.all_kinds = false,
        ];
        for calm in calmer {
            let mut other = best.clone();
            calm(&mut other);
            if self.breaks(&other) {
                best = other;
            }
        }
        best
    }
}

/// The job that something is done to.
fn job(act: &Act) -> Option<usize> {
    match &act.deed {
        Deed::Create(n) | Deed::Delete(n, _) | Deed::Recreate(n) | Deed::Edit(n, _) => Some(*n),
        _ => None,
    }
}

/// A part of `items` that is still `enough`, from which no single one can be taken: first by halves.
fn fewer<T: Clone>(mut items: Vec<T>, mut enough: impl FnMut(&[T]) -> bool) -> Vec<T> {
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
    fn what_is_needed_stays_and_nothing_else() {
        let items: Vec<u32> = (0..100).collect();
        let mut tries = 0;
        let left = fewer(items, |some| {
            tries += 1;
            some.contains(&17) && some.contains(&71)
        });
        assert_eq!(left, [17, 71]);
        assert!(tries < 60, "{tries}");
    }
}
