//! Every difference has a reason, and every reason is documented for users.

use std::collections::BTreeSet;
use std::fs;

use training_job_testbed::cluster::repository;

use super::corpus;
use super::here::{Here, Reasons, Scope, Used};
use super::normal::FAILED_JOB;

#[test]
fn every_difference_has_a_reason_and_every_reason_a_difference() {
    let reasons = Reasons::read();
    let scenarios = corpus::scenarios();
    let (mut used, mut left) = (Used::default(), Vec::new());
    for scope in Scope::ALL {
        let names = scope.scenarios();
        let known: BTreeSet<_> = scenarios.iter().map(|s| s.name.clone()).collect();
        let strange: Vec<_> = names.difference(&known).collect();
        assert!(
            strange.is_empty(),
            "{scope:?} has {strange:?}, which are no scenarios"
        );
        for scenario in scenarios.iter().filter(|s| names.contains(&s.name)) {
            let golden = scenario.golden();
            let here = Here::read(scope, &scenario.name, &golden);
            left.extend(reasons.explain(scope, scenario, &golden, &here, &mut used));
        }
    }
    assert!(
        left.is_empty(),
        "these differ without a reason:\n{}",
        left.join("\n")
    );
    let all = reasons.differences.iter().enumerate();
    let stale: Vec<_> = all
        .filter(|(n, _)| !used.reasons.contains(n))
        .map(|(_, r)| &r.at)
        .collect();
    assert!(stale.is_empty(), "these reasons are nobody's: {stale:#?}");
    let known: BTreeSet<_> = reasons.defects.into_keys().collect();
    assert_eq!(
        used.defects, known,
        "defects that explain something, and those of differences.yaml"
    );
}

#[test]
fn all_scenarios_are_played_with_the_flags_of_their_profile() {
    let all = corpus::scenarios();
    for (scope, profiles) in [
        (Scope::Replica, &["", "hazard", "mpi2"][..]),
        (Scope::Volcano, &["gang-volcano", "mpi2-volcano"]),
        (Scope::Coscheduling, &["gang-scheduler-plugins"]),
    ] {
        let of_profile = all.iter().filter(|s| profiles.contains(&&*s.profile));
        let of_profile: BTreeSet<_> = of_profile.map(|s| s.name.clone()).collect();
        assert_eq!(scope.scenarios(), of_profile, "{profiles:?}");
    }
}

#[test]
fn every_reason_is_documented() {
    let text = fs::read_to_string(repository().join("docs/users/differences.md")).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("| "));
    let heads: BTreeSet<_> = lines.filter_map(|line| line.split(" | ").next()).collect();
    let reasons = Reasons::read();
    let told = reasons
        .differences
        .iter()
        .filter_map(|reason| reason.docs.as_ref());
    let told = reasons.defects.values().chain(told).map(String::as_str);
    let told = told.chain([FAILED_JOB]);
    let untold: BTreeSet<_> = told.filter(|told| !heads.contains(told)).collect();
    assert!(
        untold.is_empty(),
        "docs/users/differences.md does not tell of {untold:#?}"
    );
    let silent = reasons
        .differences
        .iter()
        .filter(|r| r.docs.is_none() && r.why.is_none());
    assert_eq!(silent.count(), 0, "a difference has `docs` or `why`");
}
