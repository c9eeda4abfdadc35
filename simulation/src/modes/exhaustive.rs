//! Injects every fault at every call of every workload. The final state must equal that of the run without faults.

use std::collections::BTreeMap;

use crate::faults::{CallFault, CallSite};
use crate::invariants::Violation;
use crate::modes::report::Report;
use crate::modes::run::{RunSummary, run};
use crate::scenario::Scenario;
use crate::scenario::workloads::Workload;

/// The faults to try at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// The operator dies before the call or after it.
    Deaths,
    /// The call gets each fault that applies to it.
    Faults,
    /// The operator dies at the call, and again at a later call. Every n-th later call is tried.
    PairsOfDeaths(usize),
}

/// One run of a trial.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the workload and its faults.
    pub name: String,
    /// The faults.
    pub faults: BTreeMap<CallSite, CallFault>,
}

impl Case {
    /// Creates a case of this workload with these faults.
    pub fn new(workload: &Workload, faults: BTreeMap<CallSite, CallFault>) -> Self {
        let texts: Vec<_> = faults
            .iter()
            .map(|(site, f)| format!("{f:?} at {site}"))
            .collect();
        Self {
            name: format!("{}: {}", workload.name, texts.join(", ")),
            faults,
        }
    }
}

/// Returns the call sites of a run at which faults are tried. For each resource only the first watch is included,
/// because its renewals behave the same.
pub fn sites(summary: &RunSummary) -> Vec<CallSite> {
    let tried = |site: &&CallSite| site.number == 0 || !site.calls.starts_with("watch");
    summary.sites.iter().filter(tried).cloned().collect()
}

/// Returns all cases of a trial for a workload, at the call sites of its run without faults.
pub fn cases(workload: &Workload, without_faults: &RunSummary, trial: Trial) -> Vec<Case> {
    let sites = sites(without_faults);
    let deaths = [CallFault::DiesBefore, CallFault::DiesAfter];
    let mut all: Vec<Vec<(&CallSite, CallFault)>> = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        match trial {
            Trial::Deaths => all.extend(deaths.iter().map(|f| vec![(site, f.clone())])),
            Trial::Faults => {
                let faults = CallFault::all().iter().filter(|f| f.applies_to(&site.calls));
                all.extend(faults.map(|f| vec![(site, f.clone())]));
            }
            Trial::PairsOfDeaths(step) => {
                let second = sites.iter().skip(number + 1).step_by(step);
                all.extend(second.map(|s| vec![(site, CallFault::DiesAfter), (s, CallFault::DiesAfter)]));
            }
        }
    }
    let owned = |(site, fault): (&CallSite, CallFault)| (site.clone(), fault);
    all.into_iter()
        .map(|faults| Case::new(workload, faults.into_iter().map(owned).collect()))
        .collect()
}

/// Runs a workload without faults.
///
/// # Panics
/// Panics if the run violates an invariant.
pub fn run_without_faults(workload: &Workload) -> RunSummary {
    let summary = run(&workload.scenario);
    assert!(
        summary.violations.is_empty(),
        "{}: {:?}\n{}",
        workload.name,
        summary.violations,
        summary.history
    );
    summary
}

/// Returns the number of additional calls that one fault may cost. Each child may be read and created again, and some
/// events and statuses may be written again.
fn allowance(without_faults: &RunSummary) -> u64 {
    2 * without_faults.children + 12
}

/// Runs a case. Compares its final state (I17) and its number of calls (I15) with the run without faults.
pub fn run_case(workload: &Workload, expected: &RunSummary, case: &Case, report: &mut Report) -> RunSummary {
    let scenario = Scenario {
        call_faults: Some(case.faults.clone()),
        ..workload.scenario.clone()
    };
    let mut summary = run(&scenario);
    if summary.violations.is_empty() && summary.final_state != expected.final_state {
        summary.violations.push(Violation {
            id: "I17",
            at: 0,
            what: differences(&expected.final_state, &summary.final_state),
        });
    }
    let (calls, without_faults) = (summary.object_calls, expected.object_calls);
    let most = without_faults + case.faults.len() as u64 * allowance(expected);
    if summary.violations.is_empty() && calls > most {
        summary.violations.push(Violation {
            id: "I15",
            at: 0,
            what: format!("{calls} calls, and {without_faults} without faults"),
        });
    }
    report.add(&case.name, &summary);
    summary
}

fn differences(expected: &str, found: &str) -> String {
    let mut text = String::from("the final state differs:");
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
    use crate::scenario::workloads;

    /// Returns the invariants that a case violates after `change` has modified the run without faults.
    fn violated(change: impl FnOnce(&mut RunSummary)) -> Vec<&'static str> {
        let workload = &workloads::all()[0];
        let mut expected = run_without_faults(workload);
        let case = cases(workload, &expected, Trial::Deaths).remove(0);
        change(&mut expected);
        let summary = run_case(workload, &expected, &case, &mut Report::default());
        summary.violations.iter().map(|v| v.id).collect()
    }

    #[test]
    fn i15_more_calls_than_a_fault_may_cost_are_a_violation() {
        assert_eq!(violated(|_| {}), [""; 0]);
        assert_eq!(
            violated(|expected| (expected.object_calls, expected.children) = (0, 0)),
            ["I15"]
        );
    }

    #[test]
    fn i17_another_final_state_than_without_faults_is_a_violation() {
        assert_eq!(
            violated(|expected| expected.final_state.push_str("a pod more")),
            ["I17"]
        );
    }
}
