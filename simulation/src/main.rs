//! `sim`: many runs, one run again, or every fault at every call.

// A tool for people: it prints.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use training_job_simulation::exhaustive::{self, Trial};
use training_job_simulation::report::{Report, describe};
use training_job_simulation::run::{Scenario, run};
use training_job_simulation::settings::{Settings, VERSION};
use training_job_simulation::shrink::shrink;
use training_job_simulation::threads::parallel;
use training_job_simulation::workloads;
use training_job_simulation::{crowd, lives};

/// How often it is told how far many seeds are.
const PROGRESS: Duration = Duration::from_secs(10);

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
    /// What seeds mean: the version of the settings.
    #[arg(long, global = true, default_value_t = VERSION, value_parser = clap::value_parser!(u32).range(1..=i64::from(VERSION)))]
    settings: u32,
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
    /// Measure how fast jobs of four pods live when nothing goes wrong.
    Lives {
        /// How many.
        count: u64,
    },
    /// Let very many jobs of four pods live in one cluster, with operators that are killed among them.
    Crowd {
        /// How many.
        jobs: u64,
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
        Command::Seeds { count, from } => seeds(from, count, arguments.settings, threads),
        Command::Seed { seed, whole } => one(seed, arguments.settings, whole),
        Command::Lives { count } => lives(count, threads),
        Command::Crowd { jobs } => crowd(jobs),
        Command::Exhaustive { only, pairs, history } => every(&only, pairs, history, threads),
    };
    if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn seeds(from: u64, count: u64, version: u32, threads: u32) -> bool {
    let begun = Instant::now();
    let (done, broken) = (AtomicU64::new(0), AtomicU64::new(0));
    let told = |after: Duration| {
        let (done, broken) = (done.load(Ordering::Relaxed), broken.load(Ordering::Relaxed));
        eprintln!(
            "{done} of {count} seeds after {} s, {broken} broke something",
            after.as_secs()
        );
    };
    let act = |n: u64, report: &mut Report| {
        let seed = from + n;
        let outcome = run(&Scenario::with(Settings::of_version(seed, version)));
        if let Some(violation) = outcome.violations.first() {
            println!("seed {seed}: {violation}");
            broken.fetch_add(1, Ordering::Relaxed);
        }
        done.fetch_add(1, Ordering::Relaxed);
        report.add(seed, &outcome);
    };
    let report = std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(PROGRESS) == Err(RecvTimeoutError::Timeout) {
                told(begun.elapsed());
            }
        });
        let report = parallel(count, threads, act);
        drop(end);
        report
    });
    print!("{}", report.text(begun.elapsed(), threads));
    if let Some(seed) = report.violations.keys().next() {
        println!("again, and smaller: target/release/sim seed {seed} --settings {version}");
    }
    report.violations.is_empty()
}

fn lives(count: u64, threads: u32) -> bool {
    let begun = Instant::now();
    let worlds = count.div_ceil(lives::TOGETHER);
    parallel(worlds, threads, |_, _| lives::live());
    let (count, seconds) = (worlds * lives::TOGETHER, begun.elapsed().as_secs_f64());
    let rate = count as f64 / seconds / f64::from(threads);
    println!(
        "{count} lives of jobs of four pods in {seconds:.1} s on {threads} thread(s): {rate:.0} per second and thread"
    );
    true
}

fn crowd(jobs: u64) -> bool {
    let mut begun = Instant::now();
    let outcome = crowd::live(jobs, |phase| {
        let took = begun.elapsed().as_secs_f64();
        let time = phase.time.as_secs_f64();
        println!("{}: {time:.1} s of simulated time, in {took:.1} s", phase.name);
        for (kind, count) in &phase.calls {
            println!("  {count:>8} {kind}");
        }
        begun = Instant::now();
    });
    println!("{} violations", outcome.violations.len());
    for violation in &outcome.violations {
        println!("  {violation}");
    }
    outcome.violations.is_empty()
}

fn one(seed: u64, version: u32, whole: bool) -> bool {
    let scenario = Scenario::with(Settings::of_version(seed, version));
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
