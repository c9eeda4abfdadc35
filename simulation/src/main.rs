//! `sim`: many runs, one run again, or every fault at every call.

// A tool for people: it prints.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use clap::{Parser, Subcommand};
use training_job_simulation::exhaustive::{self, Trial};
use training_job_simulation::report::{Report, describe};
use training_job_simulation::run::{Scenario, run};
use training_job_simulation::settings::VERSION;
use training_job_simulation::shrink::shrink;
use training_job_simulation::threads::parallel;
use training_job_simulation::workloads;

// A run is mostly small objects that come and go.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The operator against an in-memory API, with all that can go wrong.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// How many threads to use.
    #[arg(long, global = true, default_value_t = 2)]
    threads: u32,
}

#[derive(Subcommand)]
enum Command {
    /// Run many seeds.
    Seeds {
        /// How many.
        count: u64,
        /// The first.
        #[arg(long, default_value_t = 1)]
        from: u64,
    },
    /// Run one seed, print its history, and make it smaller if it breaks something.
    Seed {
        /// Which.
        seed: u64,
        /// Leave it as it is.
        #[arg(long)]
        whole: bool,
    },
    /// Try every fault at every call of small workloads.
    Exhaustive {
        /// Only workloads whose name contains this.
        #[arg(long, default_value = "")]
        only: String,
        /// Also two deaths in one run, at every so many calls.
        #[arg(long)]
        pairs: Option<usize>,
        /// Print the history of the first case that breaks something.
        #[arg(long)]
        history: bool,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let threads = arguments.threads.max(1);
    let sound = match arguments.command {
        Command::Seeds { count, from } => seeds(from, count, threads),
        Command::Seed { seed, whole } => one(seed, whole),
        Command::Exhaustive { only, pairs, history } => every(&only, pairs, history, threads),
    };
    if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn seeds(from: u64, count: u64, threads: u32) -> bool {
    let begun = Instant::now();
    let report = parallel(count, threads, |n, report| {
        let seed = from + n;
        let outcome = run(&Scenario::of(seed));
        if let Some(violation) = outcome.violations.first() {
            println!("seed {seed}: {violation}");
        }
        report.add(seed, &outcome);
    });
    print!("{}", report.text(begun.elapsed(), threads));
    if let Some(seed) = report.violations.keys().next() {
        println!("again, and smaller: make sim SEED={seed}   (settings version {VERSION})");
    }
    report.violations.is_empty()
}

fn one(seed: u64, whole: bool) -> bool {
    let scenario = Scenario::of(seed);
    let outcome = run(&scenario);
    let Some(violation) = outcome.violations.first() else {
        print!("{}", outcome.history);
        println!("seed {seed} holds; history {:016x}", outcome.hash);
        return true;
    };
    let smaller = (!whole).then(|| shrink(&scenario, violation.id)).flatten();
    let shown = smaller.as_ref().unwrap_or(&scenario);
    let last = run(shown);
    print!("{}\n{}", describe(shown), last.history);
    for violation in &last.violations {
        println!("{violation}");
    }
    println!("seed {seed}: {violation}; history {:016x}", outcome.hash);
    false
}

fn every(only: &str, pairs: Option<usize>, history: bool, threads: u32) -> bool {
    let begun = Instant::now();
    let mut sum = Report::default();
    for workload in workloads::all().iter().filter(|w| w.name.contains(only)) {
        let expected = exhaustive::undisturbed(workload);
        let mut cases = exhaustive::cases(workload, &expected, Trial::Deaths);
        cases.extend(exhaustive::cases(workload, &expected, Trial::Faults));
        if let Some(step) = pairs {
            let trial = Trial::PairsOfDeaths(step.max(1));
            cases.extend(exhaustive::cases(workload, &expected, trial));
        }
        let shown = Mutex::new(!history);
        let report = parallel(cases.len() as u64, threads, |n, report| {
            let case = &cases[usize::try_from(n).unwrap()];
            let outcome = exhaustive::try_case(workload, &expected, case, report);
            let mut shown = shown.lock().unwrap();
            if !outcome.violations.is_empty() && !*shown {
                *shown = true;
                println!("{}\n{}", case.0, outcome.history);
            }
        });
        println!(
            "{}: {} runs, {} violations",
            workload.name,
            report.runs,
            report.violations.len()
        );
        sum.merge(report);
    }
    print!("{}", sum.text(begun.elapsed(), threads));
    sum.violations.is_empty()
}
