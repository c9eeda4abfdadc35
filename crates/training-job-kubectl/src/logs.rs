//! `logs`: the output of all replicas, merged by time.

mod follow;
mod line;
mod read;
mod source;

use std::process::ExitCode;

use anyhow::bail;
use futures::{StreamExt, TryStreamExt};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use line::{Painter, merge};
use source::{Selection, Source, sources};
use training_job_review::report::note;
use training_job_review::{Failure, Kinds};

use crate::connection::Connection;
use crate::help;
use crate::job::JobArgs;
use crate::observe::{ObservedJob, Parts, observe};

const HELP: &str = "\
Each line has the replica that printed it, in a color of its own on a terminal. Lines are ordered by the times at which
their nodes read them. With -f, the command goes on with the new pods of replicas that restart, and ends when the job
has ended and its replicas print nothing more.

A replica's container is that of its framework, such as pytorch; --container selects another one. Of a job with more
than 16 replicas, the last 100 lines of each are printed unless --tail or --since is set.

Examples:
  {program} logs train
  {program} logs train -f --tail 10
  {program} logs train --role worker --since 10m
  {program} logs train --replica worker-3 --previous
  {program} logs train --failed

Rights (in the namespace):
  get    jobs
  list   pods
  get    pods/log
With -f:
  list   jobs
  watch  jobs
  watch  pods

Exit codes:
  0    the logs are printed
  2    no such job or replica, logs that cannot be read, or bad usage
  130  ended by Ctrl-C";

/// Print the logs of all replicas, merged by time.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Print new lines as they come, until the job has ended.
    #[arg(short, long)]
    follow: bool,
    /// Only replicas of this role; can be repeated.
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    /// Only this replica, such as worker-0; can be repeated.
    #[arg(long, value_name = "REPLICA")]
    replica: Vec<String>,
    /// Only replicas that have failed.
    #[arg(long, conflicts_with = "follow")]
    failed: bool,
    /// The output of each container before its last restart by the kubelet.
    #[arg(short, long, conflicts_with = "follow")]
    previous: bool,
    /// Only lines of this last time, such as 10m or 1h30m.
    #[arg(long, value_name = "TIME", value_parser = super::duration)]
    since: Option<SignedDuration>,
    /// Only this number of last lines of each replica.
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(i64).range(0..))]
    tail: Option<i64>,
    /// Another container than the framework's.
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Print the time of each line.
    #[arg(long)]
    timestamps: bool,
    /// The maximum number of logs that are read at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    max_log_requests: u16,
}

/// The number of replicas whose whole logs are printed by default.
const MAX_WHOLE_LOGS: usize = 16;

/// The number of last lines of each replica of a larger job.
const DEFAULT_TAIL: i64 = 100;

impl Args {
    fn parameters(&self, source: &Source, replicas: usize) -> LogParams {
        let is_large = replicas > MAX_WHOLE_LOGS && self.since.is_none();
        LogParams {
            container: Some(source.container.clone()),
            previous: self.previous,
            since_seconds: self.since.map(|since| since.as_secs().max(1)),
            tail_lines: self.tail.or(is_large.then_some(DEFAULT_TAIL)),
            timestamps: true,
            ..LogParams::default()
        }
    }
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    arguments.job.with_job(kinds, async |connection, job| {
        let observed = observe(
            &connection.client,
            job,
            Parts {
                pods: true,
                ..Parts::default()
            },
        )
        .await?;
        if !observed.forbidden.is_empty() {
            bail!(
                "you are not allowed to list pods in namespace {}, and logs belong to pods",
                connection.namespace
            );
        }
        let selection = Selection::new(arguments, &observed.job)?;
        let has_ended = observed.job.status.is_finished() && observed.pods.is_empty();
        match arguments.follow && !has_ended {
            true => follow::follow(arguments, &connection, observed, &selection).await,
            false => print(arguments, &connection, &observed, &selection).await,
        }
    })
}

/// Prints the logs of the pods that exist.
async fn print(
    arguments: &Args,
    connection: &Connection,
    observed: &ObservedJob,
    selection: &Selection,
) -> anyhow::Result<ExitCode> {
    let all: Vec<Source> = observed
        .pods
        .iter()
        .flat_map(|pod| sources(pod, observed, selection))
        .collect();
    let is_wanted = |source: &&Source| match (arguments.previous, arguments.failed) {
        (true, _) if source.restarts == 0 => false,
        (_, true) => source.is_failed,
        _ => true,
    };
    let wanted: Vec<Source> = all.iter().filter(is_wanted).cloned().collect();
    if wanted.is_empty() {
        let previous = arguments.previous && !all.is_empty();
        bail!("{}", none(arguments.failed, previous, observed));
    }
    let painter = Painter::new(
        wanted.iter().map(|source| source.replica.as_str()),
        arguments.timestamps,
    );
    let api = Api::<Pod>::namespaced(connection.client.clone(), observed.job.namespace());
    let open = async |index: usize, source: &Source| {
        let parameters = arguments.parameters(source, wanted.len());
        let opened = read::lines(&api, &source.pod, &parameters, index).await;
        opened.map_err(|error| (source.replica.clone(), error))
    };
    let requests = usize::from(arguments.max_log_requests);
    let mut streams = Vec::new();
    let mut failures = Vec::new();
    if wanted.len() <= MAX_WHOLE_LOGS.min(requests) {
        for opened in futures::future::join_all(wanted.iter().enumerate().map(|(n, s)| open(n, s))).await {
            match opened {
                Ok(lines) => streams.push(lines),
                Err(failure) => failures.push(failure),
            }
        }
    } else {
        // The API server and the kubelets would not like a thousand open logs, so each is read to its end.
        let read = async |(index, source)| {
            let lines: Result<Vec<_>, _> = match open(index, source).await {
                Ok(lines) => lines
                    .try_collect()
                    .await
                    .map_err(|error| (source.replica.clone(), error)),
                Err(failure) => Err(failure),
            };
            lines
        };
        let mut reads = futures::stream::iter(wanted.iter().enumerate().map(read)).buffer_unordered(requests);
        while let Some(lines) = reads.next().await {
            match lines {
                Ok(lines) => streams.push(futures::stream::iter(lines.into_iter().map(Ok)).boxed()),
                Err(failure) => failures.push(failure),
            }
        }
    }
    for (replica, error) in &failures {
        note(&format!("{replica}: {error:#}"));
    }
    if streams.is_empty() && !failures.is_empty() {
        bail!("no log can be read");
    }
    merge(streams, &painter).await?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the reason that a log is missing. A log is deleted with its pod, but the status has the end of that of the last
/// failure.
/// `failed` selects the failed replicas, and `previous` runs before a restart, which no container has had.
pub(super) fn none(failed: bool, previous: bool, observed: &ObservedJob) -> String {
    let status = &observed.job.status;
    let see = format!("kubectl training status {}", observed.job.argument());
    let are_gone = observed.pods.is_empty() && (status.is_finished() || status.failure.is_some());
    if are_gone || failed && !observed.pods.is_empty() {
        let whose = match failed {
            true => "no pod of a failed replica exists",
            false => "no pod of the job exists",
        };
        let Some(cause) = &status.failure else {
            return format!("{whose}, and a log is deleted with its pod; see: {see}");
        };
        let lines: Vec<&str> = [cause.summary.as_str(), cause.message.as_str()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        return format!(
            "{whose}, and a log is deleted with its pod; the status has the last failure (see: {see}):\n{}",
            lines.join("\n")
        );
    }
    if previous {
        return "no container was restarted by its kubelet; a replica that the operator restarts gets a new pod, and the \
                log of the old pod is deleted with it"
            .to_owned();
    }
    format!("no container of these replicas has started; see: {see}")
}
