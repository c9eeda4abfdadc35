//! A part of `make sim`: the seeds that once violated an invariant, some other seeds, and deaths at every call of
//! some workloads.

use std::collections::BTreeMap;
use std::sync::Arc;

use training_job_simulation::REGRESSIONS;
use training_job_simulation::faults::{CallFault, PodFate};
use training_job_simulation::modes::exhaustive::{self, Trial};
use training_job_simulation::modes::report::Report;
use training_job_simulation::modes::run::run;
use training_job_simulation::modes::threads::parallel;
use training_job_simulation::scenario::Scenario;
use training_job_simulation::scenario::config::RunConfig;
use training_job_simulation::scenario::workloads;
use training_job_simulation::simulation::{SMALL, Simulation, on_paused_clock, train};

const THREADS: u32 = 2;

fn assert_no_violations(report: &Report) {
    let violations = &report.violations;
    assert!(
        violations.is_empty(),
        "{violations:#?}\nsee more: make sim SEED=<number>"
    );
}

#[test]
fn seeds_that_once_violated_an_invariant_pass() {
    let lines = REGRESSIONS.lines().filter(|line| !line.starts_with('#'));
    let seeds: Vec<(u32, u64)> = lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let mut number = || words.next().unwrap().parse::<u64>().unwrap();
            (u32::try_from(number()).unwrap(), number())
        })
        .collect();
    let report = parallel(seeds.len() as u64, THREADS, |n, report| {
        let (version, seed) = seeds[usize::try_from(n).unwrap()];
        report.add(
            seed,
            &run(&Scenario::from_config(RunConfig::from_seed_of_version(
                seed, version,
            ))),
        );
    });
    assert_no_violations(&report);
}

#[test]
fn a_hundred_other_seeds_pass() {
    // Other seeds than the first ones of `make sim`.
    const FROM: u64 = 1_000_000_000;
    let report = parallel(100, THREADS, |n, report| {
        report.add(FROM + n, &run(&Scenario::from_seed(FROM + n)));
    });
    assert_no_violations(&report);
    assert!(report.jobs > 150 && report.faults.len() > 15, "{report:?}");
}

#[test]
fn the_same_seed_is_the_same_run_to_the_byte() {
    for seed in 1..=12 {
        let scenario = Scenario::from_seed(seed);
        let first = run(&scenario);
        // On a thread of its own, and with its faults listed instead of drawn.
        let again = std::thread::scope(|scope| scope.spawn(|| run(&scenario)).join().unwrap());
        assert!(first.history == again.history, "seed {seed}");
        let listed = Scenario {
            call_faults: Some(first.call_faults.clone()),
            ..scenario
        };
        assert_eq!(
            run(&listed).history_hash,
            first.history_hash,
            "seed {seed}, its faults listed"
        );
    }
}

#[test]
fn nothing_of_a_run_outlives_it() {
    let held = Arc::new(());
    on_paused_clock(async {
        let sim = Simulation::new(|_, _| PodFate::Runs);
        let by_cluster = held.clone();
        sim.cluster.on_change(move |_, _| {
            let _ = &by_cluster;
        });
        sim.create(train("job", &SMALL)).await;
        sim.advance(10).await;
    });
    assert_eq!(
        Arc::strong_count(&held),
        1,
        "millions of runs need memory for one"
    );
}

#[test]
fn an_operator_may_die_at_any_call_of_small_workloads() {
    for workload in workloads::all() {
        if ![
            "success",
            "failure",
            "restart-job",
            "restart-replica",
            "scale-up",
            "suspend-resume",
            "recreate",
            "ttl",
            "clean-all",
            "steps-restart",
            "steps-suspend-resume",
        ]
        .contains(&&*workload.name)
        {
            continue;
        }
        let expected = exhaustive::run_without_faults(&workload);
        let mut cases = exhaustive::cases(&workload, &expected, Trial::Deaths);
        if workload.name == "success" {
            cases.extend(exhaustive::cases(&workload, &expected, Trial::PairsOfDeaths(6)));
        }
        let report = parallel(cases.len() as u64, THREADS, |n, report| {
            let case = &cases[usize::try_from(n).unwrap()];
            exhaustive::run_case(&workload, &expected, case, report);
        });
        assert_no_violations(&report);
        assert!(report.runs > 20, "{}", workload.name);
    }
}

/// A fifth of the cases of the exhaustive mode, at every call of these workloads. Each fault is injected.
#[test]
fn every_fault_may_hit_the_calls_of_small_workloads() {
    let mut counts = BTreeMap::new();
    for workload in workloads::all() {
        if !["restart-job", "clean-all"].contains(&&*workload.name) {
            continue;
        }
        let expected = exhaustive::run_without_faults(&workload);
        let all = exhaustive::cases(&workload, &expected, Trial::Faults);
        let cases: Vec<_> = all.iter().step_by(5).collect();
        let report = parallel(cases.len() as u64, THREADS, |n, report| {
            let case = cases[usize::try_from(n).unwrap()];
            exhaustive::run_case(&workload, &expected, case, report);
        });
        assert_no_violations(&report);
        counts.extend(report.faults);
    }
    for fault in CallFault::all() {
        assert!(counts.contains_key(&fault.label()), "{fault:?}: {counts:?}");
    }
}
