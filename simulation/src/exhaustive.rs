//! Every fault at every call of every workload: the end must be that of the run without faults.

use std::collections::BTreeMap;

use crate::fault::{Fault, Site};
use crate::invariants::Violation;
use crate::report::Report;
use crate::run::{Outcome, Scenario, run};
use crate::settings::{self, Settings};
use crate::workloads::Workload;

/// What is tried at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The operator dies before or after it.
    Deaths,
    /// It meets each fault.
    Faults,
    /// The operator dies at it, and again at a later one: every so many-th of them.
    PairsOfDeaths(usize),
}

/// One run of a trial, by name, with its faults.
pub type Case = (String, BTreeMap<Site, Fault>);

/// The places of a run where faults are tried. A watch that is renewed is like any other, so that of each kind
/// only the first is one.
pub fn sites(outcome: &Outcome) -> Vec<Site> {
    let tried = |site: &&Site| site.number == 0 || !site.calls.starts_with("watch");
    outcome.sites.iter().filter(tried).cloned().collect()
}

/// All cases of a trial for a workload, at the calls of its undisturbed run.
pub fn cases(workload: &Workload, undisturbed: &Outcome, trial: Trial) -> Vec<Case> {
    let sites = sites(undisturbed);
    let deaths = [Fault::DiesBefore, Fault::DiesAfter];
    let mut all: Vec<Vec<(&Site, Fault)>> = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        match trial {
            Trial::Deaths => all.extend(deaths.iter().map(|f| vec![(site, f.clone())])),
            Trial::Faults => {
                let faults = Settings::all_faults()
                    .iter()
                    .filter(|f| settings::suits(f, &site.calls));
                all.extend(faults.map(|f| vec![(site, f.clone())]));
            }
            Trial::PairsOfDeaths(step) => {
                let second = sites.iter().skip(number + 1).step_by(step);
                all.extend(second.map(|s| vec![(site, Fault::DiesAfter), (s, Fault::DiesAfter)]));
            }
        }
    }
    let name = |faults: &[(&Site, Fault)]| {
        let told: Vec<_> = faults.iter().map(|(s, f)| format!("{f:?} at {s}")).collect();
        format!("{}: {}", workload.name, told.join(", "))
    };
    let given = |(site, fault): (&Site, Fault)| (site.clone(), fault);
    all.into_iter()
        .map(|faults| (name(&faults), faults.into_iter().map(given).collect()))
        .collect()
}

/// Runs a workload without faults.
///
/// # Panics
/// If even that breaks something.
pub fn undisturbed(workload: &Workload) -> Outcome {
    let outcome = run(&workload.scenario);
    assert!(
        outcome.violations.is_empty(),
        "{}: {:?}\n{}",
        workload.name,
        outcome.violations,
        outcome.history
    );
    outcome
}

/// What one fault may cost in calls besides: each child may be asked about and made again, and some events and
/// statuses are written again.
fn allowance(undisturbed: &Outcome) -> u64 {
    2 * undisturbed.children + 12
}

/// Runs a case, and holds its end (I17) and its cost (I15) against the undisturbed one.
pub fn try_case(workload: &Workload, expected: &Outcome, case: &Case, report: &mut Report) -> Outcome {
    let scenario = Scenario {
        faults: Some(case.1.clone()),
        ..workload.scenario.clone()
    };
    let mut outcome = run(&scenario);
    if outcome.violations.is_empty() && outcome.remains != expected.remains {
        outcome.violations.push(Violation {
            id: "I17",
            at: 0,
            what: differences(&expected.remains, &outcome.remains),
        });
    }
    let most = expected.work + case.1.len() as u64 * allowance(expected);
    if outcome.violations.is_empty() && outcome.work > most {
        outcome.violations.push(Violation {
            id: "I15",
            at: 0,
            what: format!("{} calls, and {} without faults", outcome.work, expected.work),
        });
    }
    report.add(&case.0, &outcome);
    outcome
}

fn differences(expected: &str, found: &str) -> String {
    let mut text = String::from("the end differs:");
    for (sign, lines, others) in [("-", expected, found), ("+", found, expected)] {
        for line in lines
            .lines()
            .filter(|line| !others.lines().any(|other| other == *line))
        {
            text += &format!("\n      {sign} {line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads;

    /// The invariants that a case breaks if the run without faults had been as `expected` makes it.
    fn broken(expected: impl FnOnce(&mut Outcome)) -> Vec<&'static str> {
        let workload = &workloads::all()[0];
        let mut undisturbed = undisturbed(workload);
        let case = cases(workload, &undisturbed, Trial::Deaths).remove(0);
        expected(&mut undisturbed);
        let outcome = try_case(workload, &undisturbed, &case, &mut Report::default());
        outcome.violations.iter().map(|v| v.id).collect()
    }

    #[test]
    fn i15_more_calls_than_a_fault_excuses_are_told() {
        assert_eq!(broken(|_| {}), [""; 0]);
        assert_eq!(
            broken(|expected| (expected.work, expected.children) = (0, 0)),
            ["I15"]
        );
    }

    #[test]
    fn i17_another_end_than_without_faults_is_told() {
        assert_eq!(
            broken(|expected| expected.remains.push_str("a pod more")),
            ["I17"]
        );
    }
}
