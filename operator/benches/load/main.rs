//! How operators stand a burst of jobs on a real API server: `cargo bench --package training-operator --bench load`.
//!
//! This operator and the Go operator v1.8.1 do the same work in turn, in one run: a number of MXJobs is created at once,
//! and the driver plays the kubelets and watches as a user would. Figures are compared within the run; between runs
//! they depend on the machine.
//!
//! `-- --jobs 1000 --rounds 3 --train 1` choose the work; `--only ours` leaves the Go operator out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark ends with its first error"
)]

mod driver;
#[path = "../../tests/handover/operators.rs"]
mod operators;
mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Parser;
use tokio::time::sleep;
use training_job_testing::cluster::{Audit, Background, ControlPlane, Options};

use driver::Work;
use process::Usage;

#[derive(Parser)]
struct Arguments {
    /// How many jobs are created at once.
    #[arg(long, default_value_t = 100)]
    jobs: usize,
    /// How many workers each has, beside a scheduler and a server.
    #[arg(long, default_value_t = 3)]
    workers: usize,
    /// For how many seconds the pods of a job run.
    #[arg(long, default_value_t = 1)]
    train: u64,
    /// How often each operator does it.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// `ours` or `go`; both unless given.
    #[arg(long)]
    only: Option<String>,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.unwrap().block_on(compare(&arguments));
}

async fn compare(arguments: &Arguments) {
    let work = Work {
        jobs: arguments.jobs,
        workers: arguments.workers,
        train: Duration::from_secs(arguments.train),
    };
    println!(
        "{} jobs of {} pods, which run for {} s",
        work.jobs,
        work.pods(),
        arguments.train
    );
    for round in 1..=arguments.rounds {
        for name in ["ours", "go"] {
            if arguments.only.as_ref().is_none_or(|only| only == name) {
                println!("\n{name}, round {round}\n{}", run(name, &work).await);
            }
        }
    }
}

/// One operator does the work on a control plane of its own, so that none pays for what another left.
async fn run(name: &str, work: &Work) -> String {
    let options = Options {
        audit: Some(Audit::All),
        ..Options::default()
    };
    let plane = ControlPlane::start(options).await;
    plane.install_crds().await;
    let namespace = plane.namespace("load").await;
    let operator = match name {
        "ours" => operators::ours(&plane, &namespace, &[]).await,
        _ => operators::theirs(&plane, &namespace).await,
    };
    let before = [usage(&operator), api_server(&plane), Usage::own()];
    let sockets = process::watch_sockets(operator.pid());
    let seen = driver::drive(&plane, &namespace, work).await;
    // What it still writes is written soon.
    sleep(Duration::from_secs(3)).await;
    let after = [usage(&operator), api_server(&plane), Usage::own()];
    let [own, server, driver] = [0, 1, 2].map(|n| after[n].cpu - before[n].cpu);
    let mut text = seen.to_string();
    text += &format!("CPU s: operator {own:.2}, API server {server:.1}, driver {driver:.1}\n");
    text += &format!(
        "peak RSS {:.0} MiB, {} sockets\n",
        after[0].peak_rss,
        sockets.most()
    );
    text + &calls(&plane, name, work)
}

fn usage(process: &Background) -> Usage {
    Usage::of(process.pid().as_raw_nonzero().get())
}

fn api_server(plane: &ControlPlane) -> Usage {
    process::find("kube-apiserver", plane.directory()).map_or_else(Usage::default, Usage::of)
}

/// The operator's calls by verb and resource, per job.
fn calls(plane: &ControlPlane, name: &str, work: &Work) -> String {
    let agent = if name == "ours" {
        "training-operator/"
    } else {
        "training-operator.v1"
    };
    let mut counts = BTreeMap::<String, usize>::new();
    for call in plane.audit() {
        if call.user_agent.starts_with(agent) && call.stage == "ResponseComplete" {
            let resource = match &*call.subresource {
                "" => call.resource,
                subresource => format!("{}/{subresource}", call.resource),
            };
            *counts.entry(format!("{} {resource}", call.verb)).or_default() += 1;
        }
    }
    let per_job = |count: usize| count as f64 / work.jobs as f64;
    let events: usize = counts
        .iter()
        .filter(|(what, _)| what.ends_with(" events"))
        .map(|(_, n)| n)
        .sum();
    let all: usize = counts.values().sum();
    let mut text = format!(
        "calls per job {:.2} + {:.2} events:",
        per_job(all - events),
        per_job(events)
    );
    for (what, count) in counts {
        text += &format!(" {what} {:.2},", per_job(count));
    }
    text.trim_end_matches(',').to_owned()
}
