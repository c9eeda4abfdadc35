//! `local run`: runs jobs with the operator, an in-memory Kubernetes API and a node agent in one
//! process. The replicas are processes of this machine.

mod args;
mod not_applied;
mod output;
mod plan;
mod progress;
#[cfg(feature = "views")]
mod report;
#[cfg(not(feature = "views"))]
#[path = "no_report.rs"]
mod report;
mod result;
mod silence;
mod summary;
mod table;
mod terminal;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures::FutureExt;
use jiff::Timestamp;
use tokio::time::{Instant, Interval, sleep_until};
use training_job_client::Signals;
use training_job_local::{Jobs, NodeConfig, Run, RunEvent};
use training_job_program::program;
use training_job_review::{Kind, write};

use crate::kinds::Kinds;

pub(super) use args::Args;
pub(super) use plan::JobPlan;

use output::Output;
use progress::Progress;
use report::Report;
use result::RunResult;

/// The maximum number of events that are handled before the table is drawn again.
const MAX_EVENTS_PER_DRAW: usize = 256;

enum RunEnd {
    /// All jobs have ended or cannot continue.
    Finished,
    TimedOut {
        after: Duration,
        /// The replicas that had not ended.
        unfinished: String,
    },
    /// A signal arrived. Contains its exit code.
    Interrupted(u8),
}

/// Runs the jobs. If `only` is given, only the output of these pods is shown. Returns 0 if all jobs succeeded, 1 if
/// not, and 130 after Ctrl-C.
///
/// # Errors
/// The node cannot start on this machine, the API rejects a job, or the output cannot be written.
pub(super) async fn run(
    args: &Args,
    kinds: &Kinds,
    jobs: Jobs,
    plans: Vec<JobPlan>,
    only: Option<BTreeSet<String>>,
) -> anyhow::Result<ExitCode> {
    let config = args.processes.node_config(workdir(args), &Kinds::default())?;
    let progress = Progress::new(plans, kinds);
    check_mounts(&config, &progress)?;
    let report = args.report.start(kinds)?;
    let mut signals = Signals::listen()?;
    let ignored = ignored_settings(&config, &progress);
    let missing = missing_devices(&config, &progress);
    let run = jobs.start(config).await?;
    // Standard output is for the result.
    let is_quiet = args.output.is_some();
    let is_terminal = !is_quiet && std::io::stdout().is_terminal();
    let end = args
        .timeout
        .and_then(|timeout| Timestamp::now().checked_add(timeout).ok());
    let mut session = Session {
        output: Output::new(is_terminal, is_quiet, progress.writer_width())
            .with_differences(args.processes.why)
            .of_pods(only),
        report,
        progress,
        run,
        end,
        ticks: tokio::time::interval(Duration::from_secs(1)),
    };
    session.output.note(&format!(
        "images are not pulled: commands run on this machine, in {}",
        workdir(args).display()
    ));
    ignored.iter().for_each(|line| session.output.note(line));
    missing.iter().for_each(|line| session.output.note(line));
    let end = session.run_until_end(args, &mut signals).await;

    session.run.stop();
    let stopped = session.wait_until_stopped(&mut signals).await;
    let Session {
        run,
        mut progress,
        mut output,
        report,
        ..
    } = session;
    progress.settle(run.statuses());
    output.close();
    if !stopped {
        output.note("killed");
    }
    if let Some(logs) = &args.processes.keep_logs {
        output.note(&format!("the logs are below {}", logs.display()));
    }
    for line in report
        .map(|report| report.write())
        .transpose()?
        .unwrap_or_default()
    {
        output.note(&line);
    }
    if let Some(error) = output.finish(&summary::text(&run, &progress)) {
        bail!("standard output: {error}");
    }
    if is_quiet {
        let result = write::json(&RunResult::new(&run, &progress)).map_err(|error| anyhow!(error))?;
        write::print(&result).context("standard output")?;
    }
    Ok(match end {
        RunEnd::Finished if run.succeeded() => ExitCode::SUCCESS,
        RunEnd::Finished => {
            for why in run.dead_ends() {
                eprintln!("{}: {why}", program().name);
            }
            ExitCode::from(1)
        }
        RunEnd::TimedOut { after, unfinished } => {
            eprintln!(
                "{}: not finished after {} s (--timeout){unfinished}",
                program().name,
                after.as_secs_f64()
            );
            ExitCode::from(1)
        }
        RunEnd::Interrupted(code) => ExitCode::from(code),
    })
}

/// Returns an empty run that accepts jobs of these kinds.
pub(super) fn jobs<'k>(all: &Kinds, kinds: impl IntoIterator<Item = &'k Arc<Kind>>) -> Jobs {
    kinds.into_iter().fold(Jobs::default(), |jobs, kind| {
        let adjust_env = all.adjust_env.get(kind.framework.controller);
        jobs.add_kind((**kind).clone(), adjust_env.copied().unwrap_or(|_, _| ()))
    })
}

/// Returns a line for each job with settings that its processes do not get.
fn ignored_settings(config: &NodeConfig, progress: &Progress) -> Vec<String> {
    let jobs: Vec<_> = progress.planned_pods().collect();
    let has_devices = config.devices.is_some();
    let is_given = |name: &str| config.mounts.contains_key(name) || (has_devices && name.contains('/'));
    let lines = jobs.iter().filter_map(|(job, pods)| {
        let line = not_applied::line(pods, is_given, |path| path.is_dir())?;
        Some(match jobs.len() {
            1 => line,
            _ => format!("{job}: {line}"),
        })
    });
    lines.collect()
}

/// Returns a line for each role whose pods this machine has too few devices for.
fn missing_devices(config: &NodeConfig, progress: &Progress) -> BTreeSet<String> {
    let pods = progress.planned_pods().flat_map(|(_, pods)| pods);
    let lines = pods.flat_map(|(role, pod)| {
        let missing = config.missing_devices(pod).into_iter();
        missing.map(move |(resource, wanted, count)| {
            format!(
                "{role}: stays Pending, because it requests {resource} {wanted} and this machine has {count}; \
                 --ignore-devices starts it without"
            )
        })
    });
    lines.collect()
}

/// # Errors
/// No pod has the volume of a `--mount`.
fn check_mounts(config: &NodeConfig, progress: &Progress) -> anyhow::Result<()> {
    let pods = progress.planned_pods().flat_map(|(_, pods)| pods);
    let specs = pods.filter_map(|(_, pod)| pod.spec.as_ref());
    let volumes = specs.flat_map(|spec| spec.volumes.iter().flatten());
    let volumes: BTreeSet<&str> = volumes.map(|volume| volume.name.as_str()).collect();
    match config.mounts.keys().find(|name| !volumes.contains(name.as_str())) {
        None => Ok(()),
        Some(name) if volumes.is_empty() => bail!("--mount: no pod has a volume {name:?}, or any other"),
        Some(name) => {
            let known = volumes.into_iter().collect::<Vec<_>>().join(", ");
            bail!("--mount: no pod has a volume {name:?}; use one of {known}")
        }
    }
}

fn workdir(args: &Args) -> PathBuf {
    let of_file = args
        .files
        .first()
        .and_then(|file| file.parent())
        .filter(|dir| !dir.as_os_str().is_empty());
    args.workdir
        .clone()
        .or(of_file.map(Into::into))
        .unwrap_or_else(|| PathBuf::from("."))
}

/// A run and its output.
struct Session {
    run: Run,
    progress: Progress,
    output: Output,
    report: Option<Report>,
    /// The time at which `--timeout` ends the run.
    end: Option<Timestamp>,
    ticks: Interval,
}

impl Session {
    /// Prints events until all jobs have ended, the timeout has expired, or a signal arrives.
    async fn run_until_end(&mut self, args: &Args, signals: &mut Signals) -> RunEnd {
        let deadline = args.timeout.map(|timeout| (timeout, Instant::now() + timeout));
        loop {
            tokio::select! {
                // Signals come first, because processes that write without pause must not delay them.
                biased;
                code = signals.next() => {
                    self.output.note("stopping; a second signal kills the processes at once");
                    return RunEnd::Interrupted(code);
                }
                () = sleep_until_some(deadline.map(|(_, at)| at)) => {
                    if self.run.statuses().all(|(_, status)| status.is_finished()) {
                        // Only containers beside the framework's are left.
                        return RunEnd::Finished;
                    }
                    let unfinished = match &self.progress.unfinished()[..] {
                        [] => String::new(),
                        left => format!("; still running: {}; {}", left.join(", "), self.output.last_output()),
                    };
                    let after = deadline.map_or(Duration::ZERO, |(timeout, _)| timeout);
                    return RunEnd::TimedOut { after, unfinished };
                }
                more = self.handle_events() => if !more {
                    return RunEnd::Finished;
                }
            }
        }
    }

    /// Prints events until the node has stopped. Returns false if another signal arrives first.
    async fn wait_until_stopped(&mut self, signals: &mut Signals) -> bool {
        loop {
            tokio::select! {
                biased;
                _ = signals.next() => return false,
                more = self.handle_events() => if !more {
                    return true;
                }
            }
        }
    }

    /// Handles the next event and those already queued. Returns false after the last event.
    async fn handle_events(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.ticks.tick() => self.output.note_silence(),
            event = self.run.next() => if !self.handle(event) {
                return false;
            }
        }
        // The table is drawn once for many lines. The number is bounded, so that signals are handled.
        for _ in 0..MAX_EVENTS_PER_DRAW {
            match self.run.next().now_or_never() {
                Some(event) => {
                    if !self.handle(event) {
                        return false;
                    }
                }
                None => break,
            }
        }
        let jobs = summary::job_lines(&self.run, &self.progress, self.end);
        self.output.draw(&jobs, &self.progress);
        true
    }

    fn handle(&mut self, event: Option<RunEvent>) -> bool {
        if let (Some(report), Some(event)) = (&mut self.report, &event) {
            report.record(event);
        }
        match event {
            None => return false,
            Some(RunEvent::Node(event)) => self.output.node_event(&event, &self.progress),
            Some(event) => {
                if let Some(change) = self.progress.record(&event) {
                    self.output.change(&change, &self.progress);
                }
            }
        }
        true
    }
}

async fn sleep_until_some(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
