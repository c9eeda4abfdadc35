//! `wait`: waits for a state of a job.

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use jiff::SignedDuration;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use training_job::api::ConditionType;
use training_job_review::report::note;
use training_job_review::{Failure, Kinds, exit, write};

use crate::connection::Connection;
use crate::help;
use crate::job::JobArgs;
use crate::stored::StoredJob;
use crate::watch_error;

const HELP: &str = "\
A wait that can never end well ends at once: a job that has failed neither runs nor succeeds any more. A job that has
succeeded has run, so a wait for running is met.

Examples:
  {program} wait train --for finished
  {program} wait train --for succeeded --timeout 2h || {program} status train
  {program} wait pytorchjob/train --for running --timeout 5m

Rights (in the namespace):
  get    jobs
  list   jobs
  watch  jobs

Exit codes:
  0    the job is in this state
  1    the job cannot reach it any more, or not in time, or was deleted
  2    no such job, a cluster that cannot be read, or bad usage
  130  ended by Ctrl-C";

/// Wait until a job runs, or until it has ended.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// The state to wait for.
    #[arg(long = "for", value_enum, default_value_t = State::Finished, value_name = "STATE")]
    state: State,
    /// The maximum time, such as 30s or 2h [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    timeout: Option<SignedDuration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum State {
    /// The replicas that decide run, or the job has succeeded.
    Running,
    /// The job has succeeded.
    Succeeded,
    /// The job has failed.
    Failed,
    /// The job has succeeded or failed.
    Finished,
    /// The operator has suspended the job.
    Suspended,
}

/// The end of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Met,
    /// The state cannot be reached, with the reason.
    Impossible(String),
    TimedOut,
}

impl State {
    /// Returns the end of the wait, if the job's status decides it.
    pub(super) fn verdict(self, job: &StoredJob) -> Option<Result<(), String>> {
        let (succeeded, failed) = (
            job.status.is(ConditionType::Succeeded),
            job.status.is(ConditionType::Failed),
        );
        let is_met = match self {
            Self::Running => succeeded || job.status.is(ConditionType::Running),
            Self::Succeeded => succeeded,
            Self::Failed => failed,
            Self::Finished => succeeded || failed,
            Self::Suspended => job.status.is(ConditionType::Suspended),
        };
        match (is_met, succeeded || failed) {
            (true, _) => Some(Ok(())),
            (false, true) => {
                let why = job.why();
                let why = if why.is_empty() { why } else { format!(": {why}") };
                Some(Err(format!(
                    "the job has {}{why}",
                    if failed { "failed" } else { "succeeded" }
                )))
            }
            (false, false) => None,
        }
    }
}

/// Waits until `verdict` decides for a state of the job.
///
/// # Errors
/// The job cannot be watched.
pub(super) async fn until(
    connection: &Connection,
    job: &StoredJob,
    timeout: Option<Duration>,
    verdict: impl Fn(&StoredJob) -> Option<Result<(), String>>,
) -> anyhow::Result<Ended> {
    let kind = &job.kind;
    let api =
        Api::<DynamicObject>::namespaced_with(connection.client.clone(), job.namespace(), &kind.resource);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", job.name()));
    let mut events = pin!(watcher::watcher(api, only).default_backoff());
    let watch = async {
        let mut is_there = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    let now = StoredJob::new(kind, &object)?;
                    // A job that was deleted and created again under its name is another one.
                    if now.uid() != job.uid() {
                        return Ok(Ended::Impossible("the job was deleted".to_owned()));
                    }
                    is_there = true;
                    match verdict(&now) {
                        Some(Ok(())) => return Ok(Ended::Met),
                        Some(Err(why)) => return Ok(Ended::Impossible(why)),
                        None => {}
                    }
                }
                Ok(watcher::Event::Delete(_)) => {
                    return Ok(Ended::Impossible("the job was deleted".to_owned()));
                }
                Ok(watcher::Event::Init) => is_there = false,
                Ok(watcher::Event::InitDone) if !is_there => {
                    return Ok(Ended::Impossible("the job was deleted".to_owned()));
                }
                Ok(watcher::Event::InitDone) => {}
                Err(error) => watch_error(error, &kind.resource.plural)?,
            }
        }
        Ok(Ended::Impossible("the watch ended".to_owned()))
    };
    match timeout {
        None => watch.await,
        Some(timeout) => tokio::time::timeout(timeout, watch)
            .await
            .unwrap_or(Ok(Ended::TimedOut)),
    }
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let timeout = arguments
        .timeout
        .map(|timeout| Duration::try_from(timeout).unwrap_or_default());
    arguments.job.with_job(kinds, async |connection, job| {
        let ended = tokio::select! {
            ended = until(&connection, &job, timeout, |job| arguments.state.verdict(job)) => ended?,
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(130)),
        };
        match ended {
            Ended::Met => {
                write::print(&format!("{} condition met\n", job.resource_name()))?;
                Ok(ExitCode::SUCCESS)
            }
            Ended::Impossible(why) => {
                note(&format!(
                    "{0}: {why}; see: kubectl training status {0}",
                    job.argument()
                ));
                Ok(exit::check_failed())
            }
            Ended::TimedOut => {
                note(&format!(
                    "{0}: not in time; see: kubectl training status {0}",
                    job.argument()
                ));
                Ok(exit::check_failed())
            }
        }
    })
}
