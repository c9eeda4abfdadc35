//! A slice of what `make sim` does: the seeds that once broke something, some more, and deaths at every
//! call of some workloads.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use training_job_simulation::REGRESSIONS;
use training_job_simulation::exhaustive::{self, Trial};
use training_job_simulation::kubelet::Fate;
use training_job_simulation::report::Report;
use training_job_simulation::run::{Scenario, run};
use training_job_simulation::settings::Settings;
use training_job_simulation::threads::parallel;
use training_job_simulation::workloads;
use training_job_simulation::world::{SMALL, World, on_paused_clock, train};

const THREADS: u32 = 2;

fn assert_sound(report: &Report) {
    let broken = &report.violations;
    assert!(broken.is_empty(), "{broken:#?}\nsee more: make sim SEED=<number>");
}

#[test]
fn no_seed_that_once_broke_something_does_so_again() {
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
        report.add(seed, &run(&Scenario::with(Settings::of_version(seed, version))));
    });
    assert_sound(&report);
}

#[test]
fn some_seeds_hold() {
    // Others than those that `make sim` begins with.
    const FROM: u64 = 1_000_000_000;
    let report = parallel(100, THREADS, |n, report| {
        report.add(FROM + n, &run(&Scenario::of(FROM + n)));
    });
    assert_sound(&report);
    assert!(report.jobs > 150 && report.faults.len() > 15, "{report:?}");
}

#[test]
fn the_same_seed_is_the_same_run_to_the_byte() {
    for seed in 1..=12 {
        let scenario = Scenario::of(seed);
        let first = run(&scenario);
        // On a thread of its own, and with its faults listed instead of drawn.
        let again = std::thread::scope(|scope| scope.spawn(|| run(&scenario)).join().unwrap());
        assert!(first.history == again.history, "seed {seed}");
        let listed = Scenario {
            faults: Some(first.met.clone()),
            ..scenario
        };
        assert_eq!(run(&listed).hash, first.hash, "seed {seed}, its faults listed");
    }
}

#[test]
fn nothing_of_a_run_outlives_it() {
    let held = Arc::new(());
    on_paused_clock(async {
        let world = World::new(|_, _| Fate::Runs);
        let by_cluster = held.clone();
        world.cluster.on_change(move |_, _| {
            let _ = &by_cluster;
        });
        world.create(train("job", &SMALL)).await;
        world.pass(10).await;
    });
    assert_eq!(
        Arc::strong_count(&held),
        1,
        "millions of runs need memory for one"
    );
}

#[test]
fn an_operator_may_die_at_any_call_of_a_small_life() {
    for workload in workloads::all() {
        if !["success", "restart-job", "suspend-resume", "recreate"].contains(&&*workload.name) {
            continue;
        }
        let expected = exhaustive::undisturbed(&workload);
        let cases = exhaustive::cases(&workload, &expected, Trial::Deaths);
        let report = parallel(cases.len() as u64, THREADS, |n, report| {
            let case = &cases[usize::try_from(n).unwrap()];
            exhaustive::try_case(&workload, &expected, case, report);
        });
        assert_sound(&report);
        assert!(report.runs > 20, "{}", workload.name);
    }
}
