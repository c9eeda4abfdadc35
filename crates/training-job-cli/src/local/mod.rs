//! `local`: runs pods as processes of this machine.

#[cfg(feature = "local-cluster")]
mod cluster;
mod node;
mod pod_output;
mod processes;
mod run;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use serde_json::Value;
use tracing_subscriber::EnvFilter;
use training_job::Settings;
use training_job_client::call_error::failure_of;
use training_job_program::program;
use training_job_review::render::{ReplicaName, keep_replica};
use training_job_review::{Failure, check, exit, new_job, report};

use crate::kinds::Kinds;

/// The commands that run pods as processes of this machine, for `#[command(subcommand)]` in a program's command line. A
/// program that is used in clusters alone is smaller without them.
#[derive(Debug, Subcommand)]
pub enum Local {
    /// Run jobs until they end, each replica as a process.
    Run(Box<run::Args>),
    /// Offer a Kubernetes API whose jobs run as processes of this machine.
    #[cfg(feature = "local-cluster")]
    Cluster(Box<cluster::Args>),
    /// Act as a node of a cluster that runs its pods as processes.
    Node(Box<node::Args>),
}

impl Local {
    /// Runs the command.
    ///
    /// # Errors
    /// Usually bad input: exit code 2.
    pub fn run(&self, kinds: &Kinds) -> Result<ExitCode, Failure> {
        match self {
            Self::Run(arguments) => run_jobs(arguments, kinds),
            #[cfg(feature = "local-cluster")]
            Self::Cluster(arguments) => run_cluster(arguments, kinds),
            Self::Node(arguments) => block_on("local node", PROBLEMS, node::run(arguments, kinds)),
        }
    }
}

#[cfg(feature = "local-cluster")]
fn run_cluster(arguments: &cluster::Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let config = arguments.controller_config.read()?;
    report::print_all(&config.warnings);
    let jobs = run::jobs(kinds, arguments.kinds.of(kinds)?).accelerators(config.accelerators);
    block_on("local cluster", PROBLEMS, cluster::run(arguments, kinds, jobs))
}

/// Runs the jobs if all of them are valid.
fn run_jobs(arguments: &run::Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let config = arguments.controller_config.read()?;
    report::print_all(&config.warnings);
    check_usage(arguments)?;
    let checked = match &arguments.kind {
        None => check::check_for_this_machine(kinds, &arguments.files, &arguments.set),
        Some(kind) => {
            let run::Args {
                job, command, set, ..
            } = arguments;
            // The warnings are found again below.
            let (text, _) = new_job::text(kinds, kind, job, new_job::IMAGE, command, set)?;
            if arguments.print_job {
                eprint!("{text}");
            }
            check::check_text_for_this_machine(kinds, text)
        }
    };
    if arguments.kind.is_none() {
        check_workers(arguments, &checked.jobs)?;
    }
    report::print_all(&checked.findings);
    if !checked.is_valid() {
        return Ok(exit::bad_input());
    }
    let mut settings = Settings::default();
    settings.accelerators = Arc::new(config.accelerators.clone());
    let mut jobs = run::jobs(kinds, kinds.iter()).accelerators(config.accelerators);
    let mut plans = Vec::new();
    for job in &checked.jobs {
        plans.push(run::JobPlan::new(job, &settings)?);
    }
    let only = arguments.only.as_ref();
    let only = only.map(|name| pods_of(name, &plans, kinds)).transpose()?;
    for object in checked
        .config
        .iter()
        .chain(checked.jobs.iter().map(|job| &job.object))
    {
        jobs = jobs
            .job(object)
            .map_err(|error| Failure::new("local run", error))?;
    }
    // The output has what concerns the jobs.
    let log = if arguments.verbose {
        "info,kube_client=off"
    } else {
        "off"
    };
    block_on("local run", log, run::run(arguments, kinds, jobs, plans, only))
}

/// Checks the arguments that belong to `--kind`, and those that belong to files.
fn check_usage(arguments: &run::Args) -> Result<(), Failure> {
    let words = |words: &[PathBuf]| {
        let words = words.iter().map(|word| word.display().to_string());
        words.collect::<Vec<_>>().join(" ")
    };
    let problem = match (&arguments.kind, &arguments.files[..], &arguments.command[..]) {
        _ if arguments.watch => {
            "--watch is not supported, because no job is run again when a file changes; end the run with Ctrl-C, and \
             start it again"
                .to_owned()
        }
        (Some(kind), [], []) => {
            format!(
                "--kind must have a command; write: {} local run --kind {kind} -- <COMMAND>",
                program().name
            )
        }
        (Some(kind), files, []) => format!(
            "the command of --kind must follow --; write: {} local run --kind {kind} -- {}",
            program().name,
            words(files)
        ),
        (Some(_), [_, ..], _) => "FILE and --kind exclude each other; remove one".to_owned(),
        (None, ..) if arguments.job.name.is_some() => {
            "--name is the name of the job that --kind makes; change metadata.name in the file".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Failure::new("local run", problem))
}

/// # Errors
/// `--workers` is given for jobs of files. The remedy has the field of the first job's workers.
fn check_workers(arguments: &run::Args, jobs: &[check::Job]) -> Result<(), Failure> {
    let Some(workers) = arguments.job.workers else {
        return Ok(());
    };
    let field = jobs
        .first()
        .map_or("REPLICA_SPECS", |job| job.kind.framework.roles_field);
    let problem = format!(
        "--workers is for --kind; the workers of a job in a file are set with: --set spec.{field}.Worker.replicas={workers}"
    );
    Err(Failure::new("local run", problem))
}

/// Returns the names of the pods of a replica.
fn pods_of(
    replica: &ReplicaName,
    plans: &[run::JobPlan],
    kinds: &Kinds,
) -> Result<BTreeSet<String>, Failure> {
    let pods = plans.iter().flat_map(|plan| &plan.pods).map(serde_json::to_value);
    let pods = pods.collect::<Result<Vec<Value>, _>>();
    let mut pods = pods.map_err(|error| Failure::new("--only", error))?;
    keep_replica("--only", &mut pods, kinds, replica)?;
    let names = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Log lines of what goes wrong. The callers report failed connections and the events of jobs, so those lines are off.
const PROBLEMS: &str = "warn,kube_client=off,training_job_controller::events=error";

/// Runs an asynchronous command, with these logs on standard error unless RUST_LOG is set.
fn block_on(
    command: &str,
    log: &str,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> Result<ExitCode, Failure> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(log));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_env_filter(filter)
        .init();
    local_node::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let end = runtime.block_on(work);
    drop(runtime);
    local_node::end_orphans();
    end.map_err(|error| failure_of(command, &error))
}
