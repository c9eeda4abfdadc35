//! `training-operator local run`: the operator, an in-memory Kubernetes API and a node agent in one
//! process, so that a job's replicas run as processes of this machine.

mod board;
mod screen;
mod summary;
mod view;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, sleep_until};
use training_job::local::{Bind, Node, NodeConfig, NodeEvent};
use training_job::memory::Cluster;
use training_job::{Operator, Options, Settings};

use crate::kinds::{Kind, kinds};
use crate::machine::{Machine, WAITING_LINES};
use crate::signals::Signals;

use board::Board;
use view::View;

/// How long replicas may take to end by themselves once the job has succeeded.
const LINGER: Duration = Duration::from_secs(3);

/// How long replicas may take to end once they are asked to.
const GRACE: Duration = Duration::from_secs(5);

/// What to run, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Job manifests: files, or `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Where the replicas' processes start [default: the folder of the first FILE]
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<PathBuf>,

    #[command(flatten)]
    pub machine: Machine,

    /// Give up after so many seconds, with exit code 1
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .trim_end_matches('s')
        .parse()
        .map_err(|_| "a number of seconds is needed".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

/// How a run ended.
enum End {
    /// All jobs have ended, or cannot go on.
    Finished,
    /// The time was up.
    TimedOut(Duration),
    /// A signal came; its exit code.
    Interrupted(u8),
}

/// Runs the jobs, and returns how it ended: 0 if all jobs succeeded, 1 if not, 130 after Ctrl-C.
///
/// # Errors
/// The machine lacks something that is needed, or the API refuses a job.
pub(crate) async fn run(args: &Args, jobs: Vec<DynamicObject>) -> anyhow::Result<ExitCode> {
    args.machine.check()?;
    let mut signals = Signals::listen()?;
    let cluster = Cluster::builder().auto_namespaces().build();
    let client = cluster.client("default");
    let mut kinds = kinds();
    kinds.retain(|kind| jobs.iter().any(|job| kind_of(job) == Some(kind.name())));
    install(&client, &kinds).await?;

    let operator = Operator::new(client.clone(), options());
    let operator = kinds
        .iter()
        .fold(operator, |operator, kind| (kind.manage)(operator));
    let operator = tokio::spawn(operator.run());
    let (lines, output) = mpsc::channel(WAITING_LINES);
    let node = Node::start(client.clone(), node_config(args, &kinds), lines)?;

    // The watches begin before there is anything to see.
    let mut stage = Stage {
        board: Board::new(&jobs, &kinds),
        view: View::new(std::io::stdout().is_terminal(), args.machine.why),
        output,
        changes: changes(&client, &kinds).boxed(),
        ticks: tokio::time::interval(Duration::from_secs(1)),
    };
    stage.view.note(&format!(
        "images are not pulled: commands run on this machine, in {}",
        workdir(args).display()
    ));
    for job in &jobs {
        let kind = kinds.iter().find(|kind| Some(kind.name()) == kind_of(job));
        let kind = kind.with_context(|| format!("{} is no job", job.name_any()))?;
        let namespace = job.namespace().unwrap_or_else(|| "default".to_owned());
        let api = Api::namespaced_with(client.clone(), &namespace, &kind.resource);
        let created = api.create(&PostParams::default(), job).await;
        created.with_context(|| format!("{} {} was refused", kind.name(), job.name_any()))?;
    }
    let end = stage.play(args, &mut signals).await;

    // What is stopped now says nothing about the jobs.
    operator.abort();
    let stopped = stage.play_out(node.shutdown(GRACE), &mut signals).await;
    stage.take_stock(&client).await?;
    let Stage { board, mut view, .. } = stage;
    view.close();
    if !stopped {
        view.note("killed");
    }
    screen::write(&summary::of(&board));
    Ok(match end {
        End::Finished if board.all_succeeded() => ExitCode::SUCCESS,
        End::Finished => {
            for why in board.dead_ends() {
                eprintln!("training-operator: {why}");
            }
            ExitCode::from(1)
        }
        End::TimedOut(after) => {
            eprintln!(
                "training-operator: not finished after {} s (--timeout)",
                after.as_secs_f64()
            );
            ExitCode::from(1)
        }
        End::Interrupted(code) => ExitCode::from(code),
    })
}

/// A busy machine takes longer than a cluster for processes to end.
fn options() -> Options {
    Options {
        settings: Settings {
            linger: LINGER,
            ..Settings::default()
        },
        ..Options::default()
    }
}

fn kind_of(job: &DynamicObject) -> Option<&str> {
    job.types.as_ref().map(|types| types.kind.as_str())
}

async fn install(client: &Client, kinds: &[Kind]) -> anyhow::Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for kind in kinds {
        let created = definitions.create(&PostParams::default(), &kind.definition).await;
        created.with_context(|| format!("the CRD of {} was refused", kind.name()))?;
    }
    Ok(())
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

fn node_config(args: &Args, kinds: &[Kind]) -> NodeConfig {
    NodeConfig {
        grace_cap: Some(GRACE),
        bind: Bind::Any,
        ..args.machine.node_config(workdir(args), kinds)
    }
}

/// A change of a job or of a pod.
enum Change {
    Job(Box<DynamicObject>),
    Pod(Box<Pod>),
    Gone(Box<Pod>),
}

fn changes(client: &Client, kinds: &[Kind]) -> impl Stream<Item = Change> + use<> {
    let jobs = kinds.iter().map(|kind| {
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind.resource);
        watcher::watcher(api, watcher::Config::default()).boxed()
    });
    let jobs = futures::stream::select_all(jobs);
    let pods = watcher::watcher(Api::<Pod>::all(client.clone()), watcher::Config::default());
    let jobs = jobs.filter_map(async |event| match event {
        Ok(Event::Apply(job) | Event::InitApply(job)) => Some(Change::Job(Box::new(job))),
        _ => None,
    });
    let pods = pods.filter_map(async |event| match event {
        Ok(Event::Apply(pod) | Event::InitApply(pod)) => Some(Change::Pod(Box::new(pod))),
        Ok(Event::Delete(pod)) => Some(Change::Gone(Box::new(pod))),
        _ => None,
    });
    futures::stream::select(jobs, pods)
}

/// All that is shown, and where it comes from.
struct Stage {
    board: Board,
    view: View,
    output: mpsc::Receiver<NodeEvent>,
    changes: BoxStream<'static, Change>,
    ticks: Interval,
}

impl Stage {
    /// Shows what happens until all jobs have ended or the user has had enough.
    async fn play(&mut self, args: &Args, signals: &mut Signals) -> End {
        let give_up = args.timeout.map(|timeout| (timeout, Instant::now() + timeout));
        // When all jobs have ended: replicas that are to go may take a moment, and say so.
        let mut linger: Option<Instant> = None;
        loop {
            tokio::select! {
                // Processes that write without pause must not hold up the rest.
                biased;
                code = signals.next() => {
                    self.view.note("stopping; once more to kill at once");
                    return End::Interrupted(code);
                }
                () = until(give_up.map(|(_, at)| at)) => {
                    return End::TimedOut(give_up.map_or(Duration::ZERO, |(timeout, _)| timeout));
                }
                () = until(linger) => return End::Finished,
                () = self.show_next() => {}
            }
            if linger.is_none() && self.board.all_settled() {
                linger = Some(Instant::now() + GRACE);
            }
            if linger.is_some() && self.board.is_quiet() && self.output.is_empty() {
                return End::Finished;
            }
        }
    }

    /// Shows what happens while the node stops; returns whether it did before the user lost patience.
    async fn play_out(&mut self, stopping: impl Future<Output = ()>, signals: &mut Signals) -> bool {
        pin_mut!(stopping);
        loop {
            tokio::select! {
                biased;
                _ = signals.next() => return false,
                () = &mut stopping => return true,
                () = self.show_next() => {}
            }
        }
    }

    async fn show_next(&mut self) {
        tokio::select! {
            biased;
            Some(change) = self.changes.next() => {
                let told = match change {
                    Change::Job(job) => self.board.job(&job),
                    Change::Pod(pod) => self.board.pod(&pod, false),
                    Change::Gone(pod) => self.board.pod(&pod, true),
                };
                self.view.changed(&told, &self.board);
            }
            _ = self.ticks.tick() => self.view.tick(&self.board),
            Some(event) = self.output.recv() => {
                self.view.output(&event, &self.board);
                if self.output.is_empty() {
                    self.view.tick(&self.board);
                }
            }
        }
    }

    /// The last lines, and how the replicas have ended: watches may be behind.
    async fn take_stock(&mut self, client: &Client) -> anyhow::Result<()> {
        while let Ok(event) = self.output.try_recv() {
            self.view.output(&event, &self.board);
        }
        let pods = Api::<Pod>::all(client.clone());
        let listed = pods.list(&ListParams::default()).await;
        for pod in listed.context("the replicas' ends are not known")? {
            let told = self.board.pod(&pod, false);
            self.view.changed(&told, &self.board);
        }
        Ok(())
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Refuses two jobs that would share their pods' names.
///
/// # Errors
/// Names the job that is there twice.
pub(crate) fn check_names(jobs: &[DynamicObject]) -> anyhow::Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for job in jobs {
        let name = (
            job.namespace().unwrap_or_else(|| "default".to_owned()),
            job.name_any(),
        );
        if !seen.insert(name) {
            bail!(
                "{} {} is there twice; give each job its own name",
                kind_of(job).unwrap_or("job"),
                job.name_any()
            );
        }
    }
    Ok(())
}
