//! Every fault at every call of every workload: the end must be that of the run without faults.

use std::collections::BTreeMap;

use crate::fault::{Fault, Site};
use crate::invariants::Violation;
use crate::report::Report;
use crate::run::{Outcome, Scenario, run};
use crate::settings::Settings;
use crate::workloads::Workload;

/// What is tried at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The operator dies before or after it.
    Deaths,
    /// It meets each fault.
    Faults,
    /// The operator dies at it, and again at a later one: at every call of which the number is a multiple of this.
    PairsOfDeaths(u64),
}

/// One run of a trial, by name, with its faults.
pub type Case = (String, BTreeMap<Site, Fault>);

/// All cases of a trial for a workload with so many calls.
pub fn cases(workload: &Workload, calls: u64, trial: Trial) -> Vec<Case> {
    let site = |number| Site {
        calls: String::new(),
        number,
    };
    let case = |faults: Vec<(u64, Fault)>| {
        let told: Vec<_> = faults.iter().map(|(n, f)| format!("{f:?} at call {n}")).collect();
        let name = format!("{}: {}", workload.name, told.join(", "));
        (name, faults.into_iter().map(|(n, f)| (site(n), f)).collect())
    };
    let deaths = [Fault::DiesBefore, Fault::DiesAfter];
    match trial {
        Trial::Deaths => (0..calls)
            .flat_map(|n| deaths.iter().map(move |f| vec![(n, f.clone())]))
            .map(case)
            .collect(),
        Trial::Faults => (0..calls)
            .flat_map(|n| Settings::all_faults().iter().map(move |f| vec![(n, f.clone())]))
            .map(case)
            .collect(),
        Trial::PairsOfDeaths(step) => (0..calls)
            .flat_map(|first| {
                let later = (first + 1..calls + 10).filter(move |n| n % step == first % step);
                later.map(move |second| vec![(first, Fault::DiesAfter), (second, Fault::DiesAfter)])
            })
            .map(case)
            .collect(),
    }
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

/// Runs a case, and holds its end against the undisturbed one (I17).
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
