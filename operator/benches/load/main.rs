//! How operators stand load on a real API server: `cargo bench --package training-operator --bench load`.
//!
//! This operator, the Go operator v1.8.1 with and without its client's limits, and a plain writer do the same work in
//! turn, in one run. The driver plays the kubelets and watches as a user would. Figures are compared within the run;
//! between runs they depend on the machine. docs/maintainers/performance.md has the results, and says how they are made.
//!
//! `-- --quick` does less of each; `--work burst,churn` only some, whose figures take the place of those of before;
//! `--jobs 1000 --workers 3 --train 1` a burst of one's own; `--only ours,floor` leaves the others out; `--curve` is the
//! plain writer alone, with more and more calls in flight.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark ends with its first error"
)]

mod course;
mod driver;
mod floor;
mod follow;
#[path = "../../tests/handover/operators.rs"]
mod operators;
mod process;
mod relay;
mod seen;
mod stage;
mod table;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tokio::time::Instant;

use seen::Figures;
use table::{Results, Run, Worked};
use work::{Contender, Jobs, Kind, Work};

#[derive(Parser)]
struct Arguments {
    /// Fewer jobs, one round: some minutes.
    #[arg(long)]
    quick: bool,
    /// Which work of docs/maintainers/performance.md, by name; all unless given.
    #[arg(long, value_delimiter = ',')]
    work: Vec<String>,
    /// Another burst instead: how many jobs are created at once.
    #[arg(long)]
    jobs: Option<usize>,
    /// Of which kind these are.
    #[arg(long, default_value = "mxnet")]
    kind: Kind,
    /// How many workers each of these has, beside a scheduler and a server, a master, or a launcher.
    #[arg(long, default_value_t = 3)]
    workers: usize,
    /// For how many seconds the pods of one run.
    #[arg(long, default_value_t = 1)]
    train: u64,
    /// A worker of each is killed once.
    #[arg(long)]
    churn: bool,
    /// How often each contender does it.
    #[arg(long)]
    rounds: Option<usize>,
    /// Who works; who should, unless given.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Contender>,
    /// How many calls of the plain writer are in flight: as many as the kubelets'.
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// The plain writer alone, with 1 to 64 calls in flight.
    #[arg(long)]
    curve: bool,
    /// Where the figures are written; below `target`, unless given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// This process is the plain writer, and the driver is at this address.
    #[arg(long, hide = true)]
    floor: Option<String>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    // Also of a task that nobody awaits.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::exit(1);
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.unwrap();
    if let Some(address) = &arguments.floor {
        runtime.block_on(floor::run(address, arguments.in_flight));
    } else if arguments.curve {
        runtime.block_on(curve(&arguments));
    } else {
        runtime.block_on(compare(&arguments));
    }
}

fn chosen(arguments: &Arguments) -> Vec<Work> {
    let mut chosen = work::all(arguments.quick);
    if !arguments.work.is_empty() {
        let known: Vec<_> = chosen.iter().map(|work| work.name.clone()).collect();
        for name in &arguments.work {
            assert!(
                known.contains(name),
                "no work {name}; there is {}",
                known.join(", ")
            );
        }
        chosen.retain(|work| arguments.work.contains(&work.name));
    }
    if let Some(jobs) = arguments.jobs {
        let jobs = Jobs {
            churn: arguments.churn,
            workers: arguments.workers,
            ..Jobs::of(arguments.kind, jobs, arguments.workers + 2, arguments.train)
        };
        let usual = [Contender::Ours, Contender::GoUnlimited, Contender::Floor];
        let by = match &arguments.only[..] {
            [] => &usual[..],
            only => only,
        };
        chosen = vec![Work::burst("own", jobs, by, 1)];
    }
    for work in &mut chosen {
        work.rounds = arguments.rounds.unwrap_or(work.rounds);
        if !arguments.only.is_empty() {
            // Not everybody does all of it: the plain writer cannot be started again.
            work.by.retain(|contender| arguments.only.contains(contender));
        }
    }
    chosen
}

async fn compare(arguments: &Arguments) {
    let begun = Instant::now();
    let mut results = Results {
        cores: std::thread::available_parallelism().unwrap().get(),
        in_flight: arguments.in_flight,
        works: Vec::new(),
    };
    // What was chosen takes the place of what it was before.
    if let (false, Ok(before)) = (arguments.work.is_empty(), std::fs::read(out(arguments))) {
        let before: Results = serde_json::from_slice(&before).unwrap();
        results.works = before.works;
    }
    for work in chosen(arguments) {
        eprintln!("{}", work.title);
        let mut runs = Vec::new();
        for round in 1..=work.rounds {
            for contender in &work.by {
                let (figures, calls) = course::run(*contender, &work, arguments.in_flight).await;
                let by = contender.name();
                eprintln!(
                    "{:5.0} s  {by} {round}: {}",
                    begun.elapsed().as_secs_f64(),
                    brief(&figures)
                );
                runs.push(Run {
                    by: by.to_owned(),
                    round,
                    figures: rounded(figures),
                    calls: rounded(calls),
                });
            }
        }
        let worked = Worked {
            name: work.name,
            title: work.title,
            runs,
        };
        match results.works.iter_mut().find(|before| before.name == worked.name) {
            Some(before) => *before = worked,
            None => results.works.push(worked),
        }
        let order = work::all(arguments.quick);
        let place = |done: &Worked| order.iter().position(|work| work.name == done.name);
        results.works.sort_by_key(place);
        // What is done is kept, should the rest fail.
        write(arguments, &results);
    }
    println!("{}", table::tables(&results));
}

fn out(arguments: &Arguments) -> PathBuf {
    let name = if arguments.quick {
        "performance-quick.json"
    } else {
        "performance.json"
    };
    let usual = training_job_testing::cluster::repository()
        .join("target")
        .join(name);
    arguments.out.clone().unwrap_or(usual)
}

fn write(arguments: &Arguments, results: &Results) {
    let mut text = serde_json::to_string_pretty(results).unwrap();
    text.push('\n');
    let file = out(arguments);
    std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Without digits that mean nothing.
fn rounded(figures: Figures) -> Figures {
    let all = figures.into_iter();
    all.map(|(name, value)| (name, (value * 1e4).round() / 1e4))
        .collect()
}

/// The figures that one looks for first.
fn brief(figures: &Figures) -> String {
    let shown = [
        "cpu",
        "rss",
        "calls",
        "pods_p50",
        "pods_p99",
        "pods_all",
        "running_shown",
        "end_p50",
        "end_p99",
        "done",
        "memory_one",
        "memory_kind",
        "ready",
        "making_alone",
        "making_beside",
        "received",
        "connections",
        "server_cpu",
        "driver_cpu",
        "seconds",
    ];
    let known = shown
        .iter()
        .filter_map(|name| Some(format!("{name} {:.2}", figures.get(*name)?)));
    known.collect::<Vec<_>>().join(", ")
}

/// How many calls in flight serve the API server best.
async fn curve(arguments: &Arguments) {
    let jobs = Jobs::new(
        arguments.jobs.unwrap_or(100),
        arguments.workers + 2,
        Duration::from_secs(arguments.train).as_secs(),
    );
    let work = Work::burst("curve", jobs, &[Contender::Floor], 1);
    println!("{}", work.title);
    let columns = [
        "pods_rate",
        "pods_all",
        "pods_p50",
        "pods_p99",
        "end_p50",
        "end_p99",
        "done",
        "call_mean",
        "call_p50",
        "call_p99",
        "server_cpu",
        "etcd_cpu",
        "cpu",
        "driver_cpu",
    ];
    println!("in flight  {}", columns.join("  "));
    for in_flight in [1, 2, 4, 8, 16, 32, 64] {
        for _ in 0..arguments.rounds.unwrap_or(1) {
            let (figures, _) = course::run(Contender::Floor, &work, in_flight).await;
            let values = columns.map(|name| {
                let value = figures.get(name).copied().unwrap_or_default();
                format!("{value:>width$.2}", width = name.len())
            });
            println!("{in_flight:>9}  {}", values.join("  "));
        }
    }
}
