//! Measures operators under load on a real API server: `make bench`.
//!
//! This operator, the Go operator v1.8.1 with and without its client's limits, and a plain writer do the same works in
//! turn. The driver plays the kubelets and watches jobs as a client does. Compare figures within a run only, because
//! they depend on the machine. docs/maintainers/performance.md describes the method and the results.
//!
//! `--quick` runs smaller works. `--work burst,churn` runs some works and replaces their stored figures.
//! `--jobs 1000 --workers 3 --train 1` runs one burst of these jobs. `--only ours,floor` selects contenders. `--curve`
//! runs the plain writer alone, with a growing number of calls in flight.

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
mod processes;
mod table;
mod test_cluster;
mod timelines;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use tokio::time::Instant;

use table::{Results, Run, Worked};
use timelines::Figures;
use work::{Contender, Jobs, Kind, Work};

#[derive(Parser)]
struct Arguments {
    /// Run smaller works, one round each: some minutes
    #[arg(long)]
    quick: bool,
    /// The works to run, by the names in docs/maintainers/performance.json; all by default
    #[arg(long, value_delimiter = ',')]
    work: Vec<String>,
    /// Run one burst of this many jobs instead
    #[arg(long)]
    jobs: Option<usize>,
    /// The kind of the jobs of that burst
    #[arg(long, default_value = "mxnet")]
    kind: Kind,
    /// The workers of each of its jobs, besides a scheduler and a server, a master, or a launcher
    #[arg(long, default_value_t = 3)]
    workers: usize,
    /// The run time of its pods, in seconds
    #[arg(long, default_value_t = 1)]
    train: u64,
    /// Kill one worker of each job once
    #[arg(long)]
    churn: bool,
    /// The number of rounds; each contender does each work once a round
    #[arg(long)]
    rounds: Option<usize>,
    /// The contenders; by default those of each work
    #[arg(long, value_delimiter = ',')]
    only: Vec<Contender>,
    /// The calls in flight of the plain writer; the driver has as many for the kubelets
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// Run the plain writer alone, with 1 to 64 calls in flight
    #[arg(long)]
    curve: bool,
    /// The file for the figures; by default below `target`
    #[arg(long)]
    out: Option<PathBuf>,
    /// Run as the plain writer for the driver at this address
    #[arg(long, hide = true)]
    floor: Option<String>,
    /// Added by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    // End also at a panic of a task that is not awaited.
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
            // A contender that cannot do a work is not added: the plain writer cannot be restarted.
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
    // The chosen works replace their stored figures; the other figures stay.
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
        // Keep the figures so far, should a later work fail.
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
    let usual = training_job_testbed::cluster::repository()
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

/// Rounds to four decimals.
fn rounded(figures: Figures) -> Figures {
    let all = figures.into_iter();
    all.map(|(name, value)| (name, (value * 1e4).round() / 1e4))
        .collect()
}

/// Returns the most important figures, for the terminal.
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

/// Measures the plain writer with 1 to 64 calls in flight, to find the number that suits the API server best.
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
