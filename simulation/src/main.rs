//! `sim`: runs many seeds, one seed, or every fault at every call, and measures.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "this is a tool for developers, which prints its results"
)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use parking_lot::Mutex;
use training_job_simulation::modes::crowd::Size;
use training_job_simulation::modes::exhaustive::{self, Trial};
use training_job_simulation::modes::report::{Report, describe};
use training_job_simulation::modes::run::run;
use training_job_simulation::modes::shrink::shrink;
use training_job_simulation::modes::threads::parallel;
use training_job_simulation::modes::{crowd, growth};
use training_job_simulation::scenario::Scenario;
use training_job_simulation::scenario::config::{RunConfig, SEED_VERSION};
use training_job_simulation::scenario::workloads;

/// The time between two lines of progress of many seeds.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// The numbers of jobs in the clusters whose growth is measured.
const GROWTH_CLUSTER_SIZES: [u64; 5] = [100, 300, 1_000, 3_000, 10_000];

/// The CPU for one job may grow with this power of the number of jobs in the cluster.
const MAX_GROWTH_EXPONENT: f64 = 0.1;

// A run mostly allocates and frees small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulate the operator on an in-memory API, with faults.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The number of threads.
    #[arg(long, global = true, default_value_t = 2)]
    threads: u32,
    /// The seed version, as in regressions.txt.
    #[arg(long, global = true, default_value_t = SEED_VERSION, value_parser = clap::value_parser!(u32).range(1..=i64::from(SEED_VERSION)))]
    settings: u32,
}

#[derive(Subcommand)]
enum Command {
    /// Run many seeds.
    Seeds {
        /// The number of seeds.
        count: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        from: u64,
    },
    /// Run one seed, print its history, and shrink it if it violates an invariant.
    Seed {
        /// The seed.
        seed: u64,
        /// Do not shrink it.
        #[arg(long)]
        whole: bool,
    },
    /// Run very many jobs in one cluster, or one of very many pods, and kill operators meanwhile.
    Crowd {
        /// The number of jobs.
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        jobs: u64,
        /// The number of pods of each.
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(4..=1_000_000))]
        pods: u32,
        /// The limit of memory in MiB, including operators, API server and history.
        #[arg(long)]
        most_memory: Option<u64>,
        /// End each watch after this number of events.
        #[arg(long)]
        watch_ends: Option<u64>,
    },
    /// Measure how the CPU of a change grows with the number of jobs in the cluster.
    Growth,
    /// Try every fault at every call of small workloads.
    Exhaustive {
        /// Only workloads whose name contains this.
        #[arg(long, default_value = "")]
        only: String,
        /// Also let the operator die twice in a run, the second time at every PAIRS-th of the later calls.
        #[arg(long)]
        pairs: Option<usize>,
        /// Print the history of the first case that violates an invariant.
        #[arg(long)]
        history: bool,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let threads = arguments.threads.max(1);
    let passed = match arguments.command {
        Command::Seeds { count, from } => run_seeds(from, count, arguments.settings, threads),
        Command::Seed { seed, whole } => run_seed(seed, arguments.settings, whole),
        Command::Crowd {
            jobs,
            pods,
            most_memory,
            watch_ends,
        } => run_crowd(Size { jobs, pods }, most_memory, watch_ends),
        Command::Growth => run_growth(),
        Command::Exhaustive { only, pairs, history } => run_exhaustive(&only, pairs, history, threads),
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_seeds(from: u64, count: u64, version: u32, threads: u32) -> bool {
    let begun = Instant::now();
    let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let print_progress = |after: Duration| {
        let (done, failed) = (done.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
        eprintln!(
            "{done} of {count} seeds after {} s, {failed} failed",
            after.as_secs()
        );
    };
    let act = |n: u64, report: &mut Report| {
        let seed = from + n;
        let config = RunConfig::from_seed_of_version(seed, version);
        let summary = run(&Scenario::from_config(config));
        if let Some(violation) = summary.violations.first() {
            println!("seed {seed}: {violation}");
            failed.fetch_add(1, Ordering::Relaxed);
        }
        done.fetch_add(1, Ordering::Relaxed);
        report.add(seed, &summary);
    };
    let report = std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(PROGRESS_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                print_progress(begun.elapsed());
            }
        });
        let report = parallel(count, threads, act);
        drop(end);
        report
    });
    print!("{}", report.text(begun.elapsed(), threads));
    if let Some(seed) = report.violations.keys().next() {
        println!("to run it again and shrink it: target/sim/sim seed {seed} --settings {version}");
    }
    report.violations.is_empty()
}

fn run_crowd(size: Size, most_memory: Option<u64>, watch_ends: Option<u64>) -> bool {
    let mut begun = Instant::now();
    let summary = crowd::run(size, watch_ends, |phase| {
        let took = begun.elapsed().as_secs_f64();
        let time = phase.time.as_secs_f64();
        println!("{}: {time:.1} s of simulated time, in {took:.1} s", phase.name);
        for (calls, count) in &phase.calls {
            println!("  {count:>8} {calls}");
        }
        begun = Instant::now();
    });
    println!("{} violations", summary.violations.len());
    for violation in &summary.violations {
        println!("  {violation}");
    }
    let memory = peak_memory();
    println!("{memory} MiB of memory at most");
    let too_much = most_memory.filter(|most| memory > *most);
    if let Some(most) = too_much {
        eprintln!("sim: it took {memory} MiB of memory, and not {most} MiB at most");
    }
    summary.violations.is_empty() && too_much.is_none()
}

/// The most memory that this process has had, in MiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .and_then(|peak| peak.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap();
    kib / 1_024
}

fn run_growth() -> bool {
    println!("{:>8} {:>14} {:>16}", "jobs", "a change, µs", "one job more, µs");
    let costs = GROWTH_CLUSTER_SIZES.map(|jobs| {
        let cost = growth::measure(jobs);
        println!(
            "{jobs:>8} {:>14.1} {:>16.1}",
            cost.change / 1e3,
            cost.one_more / 1e3
        );
        cost
    });
    let slopes = [
        growth::slope(&costs, |c| c.change),
        growth::slope(&costs, |c| c.one_more),
    ];
    println!("{:>8} {:>14.3} {:>16.3}", "slope", slopes[0], slopes[1]);
    let steepest = slopes[0].max(slopes[1]);
    let passed = steepest <= MAX_GROWTH_EXPONENT;
    if !passed {
        eprintln!(
            "sim: the operator's CPU for one job grows with the power {steepest:.3} of the jobs in the cluster, and not {MAX_GROWTH_EXPONENT} at most"
        );
    }
    passed
}

fn run_seed(seed: u64, version: u32, whole: bool) -> bool {
    let scenario = Scenario::from_config(RunConfig::from_seed_of_version(seed, version));
    let summary = run(&scenario);
    let Some(violation) = summary.violations.first() else {
        print!("{}", summary.history);
        println!("seed {seed} passed; history {:016x}", summary.history_hash);
        return true;
    };
    let smaller = (!whole).then(|| shrink(&scenario, violation.id)).flatten();
    let shown = smaller.as_ref().unwrap_or(&scenario);
    let last = run(shown);
    print!("{}\n{}", describe(shown), last.history);
    for violation in &last.violations {
        println!("{violation}");
    }
    println!("seed {seed}: {violation}; history {:016x}", summary.history_hash);
    false
}

fn run_exhaustive(only: &str, pairs: Option<usize>, history: bool, threads: u32) -> bool {
    let begun = Instant::now();
    let mut sum = Report::default();
    for workload in workloads::all().iter().filter(|w| w.name.contains(only)) {
        let expected = exhaustive::run_without_faults(workload);
        let mut cases = exhaustive::cases(workload, &expected, Trial::Deaths);
        cases.extend(exhaustive::cases(workload, &expected, Trial::Faults));
        if let Some(step) = pairs {
            let trial = Trial::PairsOfDeaths(step.max(1));
            cases.extend(exhaustive::cases(workload, &expected, trial));
        }
        let shown = Mutex::new(!history);
        let report = parallel(cases.len() as u64, threads, |n, report| {
            let case = &cases[usize::try_from(n).unwrap()];
            let summary = exhaustive::run_case(workload, &expected, case, report);
            let mut shown = shown.lock();
            if !summary.violations.is_empty() && !*shown {
                *shown = true;
                println!("{}\n{}", case.name, summary.history);
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
