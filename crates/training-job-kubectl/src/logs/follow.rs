//! Follows the logs of a job over restarts of its pods.

use std::collections::BTreeSet;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, LogParams};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use training_job_review::report::note;

use super::line::{Line, Painter};
use super::source::{Selection, Source, sources};
use super::{Args, read};
use crate::connection::Connection;
use crate::observe::ObservedJob;
use crate::stored::StoredJob;
use crate::watch_error;

/// The time in which lines of several replicas are put in order before they are printed.
const REORDER: Duration = Duration::from_millis(200);

/// The time without a line after which the logs of an ended job are complete although containers still run.
const QUIET_END: Duration = Duration::from_secs(3);

/// The time before a log whose connection broke is opened again.
const RETRY: Duration = Duration::from_secs(1);

/// The number of lines that wait to be printed.
const MAX_QUEUED_LINES: usize = 4_096;

/// Prints the lines of all replicas until the job has ended.
pub(super) async fn follow(
    arguments: &Args,
    connection: &Connection,
    mut observed: ObservedJob,
    selection: &Selection,
) -> anyhow::Result<ExitCode> {
    let (kind, name) = (observed.job.kind.clone(), observed.job.name().to_owned());
    let namespace = observed.job.namespace().to_owned();
    let pods = Api::<Pod>::namespaced(connection.client.clone(), &namespace);
    let jobs = Api::<DynamicObject>::namespaced_with(connection.client.clone(), &namespace, &kind.resource);
    let of_pods = watcher::Config::default().labels(&observed.job.selector());
    let of_job = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut pod_events = pin!(
        watcher::watcher(pods.clone(), of_pods)
            .default_backoff()
            .applied_objects()
    );
    let mut job_events = pin!(watcher::watcher(jobs, of_job).default_backoff());
    let mut followers = Followers::new(arguments, pods);
    for pod in &observed.pods {
        let source = sources(pod, &observed, selection);
        followers.add(source, true);
    }
    let mut is_ended = observed.job.status.is_finished();
    let mut tick = interval(REORDER / 2);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_change = Instant::now();
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            Some(event) = pod_events.next() => match event {
                Ok(pod) if is_own(&pod, &observed.job) => {
                    let source = sources(&pod, &observed, selection);
                    if followers.add(source, false) {
                        last_change = Instant::now();
                    }
                }
                Ok(_) => {}
                Err(error) => watch_error(error, "pods")?,
            },
            Some(event) = job_events.next() => match event {
                Ok(watcher::Event::Apply(job) | watcher::Event::InitApply(job)) => {
                    observed.job = StoredJob::new(&kind, &job)?;
                    let was_ended = std::mem::replace(&mut is_ended, observed.job.status.is_finished());
                    if is_ended && !was_ended {
                        last_change = Instant::now();
                    }
                }
                Ok(watcher::Event::Delete(_)) => is_ended = true,
                Ok(_) => {}
                Err(error) => watch_error(error, &kind.resource.plural)?,
            },
            Some(line) = followers.lines.recv() => {
                last_change = Instant::now();
                followers.buffer.push((last_change, line));
            }
            Some(ended) = followers.tasks.join_next() => {
                if let Ok(Err((replica, error))) = ended {
                    note(&format!("{replica}: {error:#}"));
                }
                followers.start_next();
            }
            _ = tick.tick() => {
                if !followers.print(REORDER)? {
                    return Ok(ExitCode::SUCCESS);
                }
                let is_quiet = followers.buffer.is_empty() && last_change.elapsed() >= QUIET_END;
                if is_ended && (is_quiet || followers.are_done() && last_change.elapsed() >= 2 * REORDER) {
                    let state = observed.job.state();
                    note(&format!("{} has ended: {state}", observed.job.argument()));
                    return Ok(ExitCode::SUCCESS);
                }
            }
            _ = &mut interrupt => {
                followers.print(Duration::ZERO)?;
                return Ok(ExitCode::from(130));
            }
        }
    }
}

fn is_own(pod: &Pod, job: &StoredJob) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.uid == job.uid())
}

/// The tasks that read logs, at most as many as the arguments allow.
struct Followers<'a> {
    arguments: &'a Args,
    api: Api<Pod>,
    painter: Painter,
    /// The runs of containers that were seen, by pod, container and restarts.
    seen: BTreeSet<(String, String, i32)>,
    waiting: Vec<(Source, bool)>,
    /// True once the user knows that logs wait.
    has_noted_limit: bool,
    tasks: JoinSet<Result<(), (String, anyhow::Error)>>,
    sender: mpsc::Sender<Line>,
    lines: mpsc::Receiver<Line>,
    buffer: Vec<(Instant, Line)>,
}

impl<'a> Followers<'a> {
    fn new(arguments: &'a Args, api: Api<Pod>) -> Self {
        let (sender, lines) = mpsc::channel(MAX_QUEUED_LINES);
        Self {
            arguments,
            api,
            painter: Painter::new(std::iter::empty(), arguments.timestamps),
            seen: BTreeSet::new(),
            waiting: Vec::new(),
            has_noted_limit: false,
            tasks: JoinSet::new(),
            sender,
            lines,
            buffer: Vec::new(),
        }
    }

    /// Follows a run of a container, unless it is followed. Returns true if it is new. `--tail` and `--since` apply to
    /// the runs at the start only, so that no line of a restarted replica is lost.
    fn add(&mut self, source: Option<Source>, is_at_start: bool) -> bool {
        let Some(source) = source else {
            return false;
        };
        let key = (source.uid.clone(), source.container.clone(), source.restarts);
        if !self.seen.insert(key) {
            return false;
        }
        self.waiting.push((source, is_at_start));
        self.start_next();
        true
    }

    fn start_next(&mut self) {
        let limit = usize::from(self.arguments.max_log_requests);
        while self.tasks.len() < limit && !self.waiting.is_empty() {
            let (source, is_at_start) = self.waiting.remove(0);
            let replica = self.painter.position(&source.replica);
            let parameters = match is_at_start {
                true => self.arguments.parameters(&source, 1),
                false => LogParams {
                    container: Some(source.container.clone()),
                    timestamps: true,
                    ..LogParams::default()
                },
            };
            let parameters = LogParams {
                follow: true,
                ..parameters
            };
            let (api, sender) = (self.api.clone(), self.sender.clone());
            self.tasks.spawn(async move {
                let read = read_to_end(&api, &source, parameters, replica, &sender).await;
                read.map_err(|error| (source.replica, error))
            });
        }
        if let Some((source, _)) = self.waiting.first()
            && !std::mem::replace(&mut self.has_noted_limit, true)
        {
            note(&format!(
                "{} logs are followed at a time, and {} waits until one ends; select replicas with --role or --replica, or \
                 raise --max-log-requests",
                limit, source.replica
            ));
        }
    }

    fn are_done(&self) -> bool {
        self.tasks.is_empty() && self.waiting.is_empty() && self.buffer.is_empty()
    }

    /// Prints the lines that came before `age`, ordered by time. Returns false if the reader of the output is gone.
    fn print(&mut self, age: Duration) -> std::io::Result<bool> {
        while let Ok(line) = self.lines.try_recv() {
            self.buffer.push((Instant::now(), line));
        }
        let (mut due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.buffer)
            .into_iter()
            .partition(|(came, _)| came.elapsed() >= age);
        self.buffer = rest;
        due.sort_by_key(|(_, line)| line.time);
        self.painter.print(due.iter().map(|(_, line)| line))
    }
}

/// Sends the lines of a run until the container ends. If the connection breaks, the log goes on after the last line.
async fn read_to_end(
    api: &Api<Pod>,
    source: &Source,
    mut parameters: LogParams,
    replica: usize,
    sender: &mpsc::Sender<Line>,
) -> anyhow::Result<()> {
    let mut last = Timestamp::MIN;
    loop {
        let mut lines = read::lines(api, &source.pod, &parameters, replica).await?;
        let ended = loop {
            match lines.try_next().await {
                // The time of a request has seconds only, so that lines come again.
                Ok(Some(line)) if line.time <= last && parameters.since_time.is_some() => {}
                Ok(Some(line)) => {
                    last = last.max(line.time);
                    if sender.send(line).await.is_err() {
                        return Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match ended {
            Ok(()) => return Ok(()),
            Err(_) => {
                tokio::time::sleep(RETRY).await;
                if last > Timestamp::MIN {
                    parameters.since_time = Some(last);
                    (parameters.tail_lines, parameters.since_seconds) = (None, None);
                }
            }
        }
    }
}
