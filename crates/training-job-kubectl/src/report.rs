//! `report`: the story of a job as a page or as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{Api, LogParams};
use training_job::Settings;
use training_job_client::call_error::{explained, failure_of};
use training_job_client::cluster::with_timeout;
use training_job_review::report::note;
use training_job_review::{Failure, Kinds, write};
use training_job_story::{Recorder, Story, html};

use crate::connection::{Connection, connect, namespace};
use crate::help;
use crate::history::{HistoryArgs, REMEDY, Sought};
use crate::job::JobArgs;
use crate::observe::{ObservedJob, Parts, find, observe};
use crate::stored::StoredJob;
use crate::story::{story_of, timed, write_file};
use crate::target::{NoSuchJob, Target};

const HELP: &str = "\
The page is one file that loads nothing: it can be sent to a colleague. It has the timeline of all replicas, the root
cause with its last log lines, metrics that the replicas printed (lines such as `step 120/1000 loss=0.53`), conditions,
events, the spec with its defaults, and warnings. It contains texts of logs and events, so read it before you send it.

Pods that were replaced are known from the failures in the job's status and from events, which the API server keeps for
an hour by default. An operator with --history keeps the stories of jobs that have finished. With --history, the report
of a job that was deleted is its last story.

Examples:
  {program} report train --output-file train.html
  {program} report train -o json > train.json
  {program} report train --history /mnt/history --output-file train.html

Rights (in the namespace):
  get   jobs
  list  pods
  list  events
  get   pods/log

Without one of the rights but the first, the story lacks what it gives.

Exit codes:
  0  the story is written
  2  no such job, a cluster that cannot be read, or bad usage";

/// Write the story of a job as one HTML page: timeline, root cause, metrics, events.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t = Format::Html)]
    output: Format,
    /// The file to write [default: standard output].
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    history: HistoryArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A page for a browser.
    Html,
    /// The facts of the page.
    Json,
}

/// The maximum number of pods whose logs are read for metrics.
const MAX_WHOLE_LOGS: usize = 16;

/// The number of last lines of the first pods, from which metrics are read.
const METRIC_LINES: i64 = 5_000;

/// The number of last lines of the other pods.
const LINES: i64 = 20;

/// The maximum size of a log, in bytes.
const MAX_LOG_BYTES: i64 = 2 << 20;

/// The maximum number of logs that are read at the same time.
const MAX_REQUESTS: usize = 32;

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let story = match current(arguments, kinds) {
        Err(failure) if arguments.history.is_selected() => {
            let cause = failure.to_string();
            let story = earlier(arguments, kinds)?.ok_or(failure)?;
            note(&format!(
                "the story is from the history: {}",
                cause.trim_start_matches("error: ")
            ));
            story
        }
        current => current?,
    };
    let text = match arguments.output {
        Format::Html => html(&story),
        Format::Json => story.json(),
    };
    match &arguments.output_file {
        Some(file) => {
            write_file(file, &text).map_err(|error| Failure::new(&file.to_string_lossy(), error))?
        }
        None => write::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the latest story of a job in the history.
fn earlier(arguments: &Args, kinds: &Kinds) -> Result<Option<Story>, Failure> {
    let target = Target::parse(&arguments.job.job, kinds);
    let target = target.map_err(|error| failure_of("error", &error))?;
    let sought = Sought::of(&target, namespace(&arguments.job.connection));
    arguments.history.find(&sought)
}

/// Observes the job in the cluster.
fn current(arguments: &Args, kinds: &Kinds) -> Result<Story, Failure> {
    connect(&arguments.job.connection, async |connection| {
        let job = match find(&connection, kinds, &arguments.job.job).await {
            Err(error) if error.is::<NoSuchJob>() && !arguments.history.is_selected() => {
                return Err(anyhow!("{error}; {REMEDY}"));
            }
            found => found?,
        };
        let (story, notes) = story_of_stored(&connection, job).await?;
        notes.iter().for_each(|text| note(text));
        Ok(story)
    })
}

/// Returns the story of a job in the cluster, and sentences about what it lacks.
///
/// # Errors
/// A list failed for another reason than missing rights.
pub(super) async fn story_of_stored(
    connection: &Connection,
    job: StoredJob,
) -> anyhow::Result<(Story, Vec<String>)> {
    let parts = Parts {
        pods: true,
        events: true,
    };
    let observed = observe(&connection.client, job, parts).await?;
    let lacks = |resource| format!("you are not allowed to list {resource}, so the story lacks them");
    let mut notes: Vec<String> = observed.forbidden.iter().map(lacks).collect();
    let story = story(connection, &observed, &mut notes).await;
    Ok((story, notes))
}

async fn story(connection: &Connection, observed: &ObservedJob, notes: &mut Vec<String>) -> Story {
    let job = &observed.job;
    let mut recorder = Recorder::new(job.kind.framework.keys(), &job.object);
    for pod in &observed.pods {
        recorder.pod(pod, false, observed.now);
    }
    for event in &observed.events {
        recorder.event(event);
    }
    let api = Api::<Pod>::namespaced(connection.client.clone(), job.namespace());
    let logs = observed
        .pods
        .iter()
        .enumerate()
        .filter_map(|(n, pod)| parameters(n, pod, observed).map(|log| (pod, log)));
    let logs = logs.map(async |(pod, parameters)| {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let read = with_timeout(api.logs(&name, &parameters)).await;
        (
            name,
            read.and_then(|log| log.map_err(|error| explained(error, "get", "pods/log"))),
        )
    });
    let mut logs = futures::stream::iter(logs).buffered(MAX_REQUESTS);
    let (mut failed, mut reason) = (0_usize, String::new());
    while let Some((pod, log)) = logs.next().await {
        match log {
            Ok(log) => log.lines().for_each(|line| {
                let (at, text) = timed(line);
                recorder.line(&pod, text, at);
            }),
            Err(error) => {
                failed += 1;
                reason = format!("{error:#}");
            }
        }
    }
    if failed > 0 {
        notes.push(format!(
            "{failed} logs cannot be read, so the story lacks them: {reason}"
        ));
    }
    recorder.finish(
        &story_of(&job.kind, &job.object, &Settings::default()),
        observed.now,
    )
}

/// Returns the parameters for the log of a pod, if its main container has started.
fn parameters(place: usize, pod: &Pod, observed: &ObservedJob) -> Option<LogParams> {
    let keys = observed.job.kind.framework.keys();
    let role = pod.metadata.labels.as_ref()?.get(&keys.replica_type())?;
    let outline = observed.job.outline.as_ref().ok();
    let main = outline.and_then(|outline| {
        outline
            .roles
            .iter()
            .find(|own| own.slug == *role)?
            .main_container
            .clone()
    });
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let is_main = |status: &&ContainerStatus| main.as_ref().is_none_or(|main| status.name == *main);
    let status = statuses.iter().find(is_main)?;
    let state = status.state.as_ref()?;
    let runs = state.running.is_some() || state.terminated.is_some();
    (runs || status.restart_count > 0).then(|| LogParams {
        container: Some(status.name.clone()),
        // The log of a container that waits for its restart is that of its last run.
        previous: !runs,
        tail_lines: Some(if place < MAX_WHOLE_LOGS {
            METRIC_LINES
        } else {
            LINES
        }),
        limit_bytes: Some(MAX_LOG_BYTES),
        timestamps: true,
        ..LogParams::default()
    })
}
