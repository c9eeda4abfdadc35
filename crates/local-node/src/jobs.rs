//! Jobs on this machine alone: an in-memory API, the operator and a node in one process (feature `jobs`).

mod error;
mod event;
mod ledger;
mod main;

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use kube_manifest::{Finding, Node as Document, Severity};
use kube_memory::Cluster;
use training_job::api::JobStatus;
use training_job::validate::manifest::{self, Schemas};
use training_job::{FieldErrors, Operator, Options, Settings, TrainingJob};

use super::config::{Bind, EnvAdjust, NodeConfig};
use super::event::NodeEvent;
use super::node::Node;

pub use error::RunError;
pub use event::RunEvent;
pub use main::main;

use ledger::Ledger;

/// How long replicas may take to end by themselves once the job has succeeded: a busy machine takes longer
/// than a cluster.
const LINGER: Duration = Duration::from_secs(3);

/// How long replicas may take to end once they are asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Lines of output that may wait to be read before processes have to wait.
const WAITING_LINES: usize = 1_024;

/// Jobs to be run on this machine, and their kinds.
///
/// ```no_run
/// # async fn is_async<MyJob: training_job::TrainingJob>() -> Result<(), local_node::RunError> {
/// use local_node::{Jobs, NodeConfig};
///
/// let manifest = std::fs::read_to_string("job.yaml").unwrap();
/// let mut run = Jobs::default().kind::<MyJob>().yaml(&manifest)?.start(NodeConfig::default()).await?;
/// while let Some(event) = run.next().await {
///     if let Some(line) = event.line() {
///         println!("{line}");
///     }
/// }
/// println!("{}", if run.succeeded() { "succeeded" } else { "failed" });
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Jobs {
    kinds: Vec<Kind>,
    /// Each with the place of its kind.
    jobs: Vec<(usize, DynamicObject)>,
}

#[derive(Debug)]
struct Kind {
    resource: ApiResource,
    definition: fn() -> CustomResourceDefinition,
    manage: fn(Operator) -> Operator,
    controller: &'static str,
    adjust: EnvAdjust,
    derive_schemas: fn() -> Schemas,
    schemas: OnceLock<Schemas>,
    check: fn(&Schemas, &Value) -> Result<DynamicObject, FieldErrors>,
}

impl Jobs {
    /// Adds the kind of job `J`.
    #[must_use]
    pub fn kind<J: TrainingJob>(self) -> Self {
        self.kind_adjusted::<J>(|_, _| {})
    }

    /// Adds the kind of job `J`, whose processes need `adjust` where many pods share one network.
    #[must_use]
    pub fn kind_adjusted<J: TrainingJob>(mut self, adjust: EnvAdjust) -> Self {
        self.kinds.push(Kind {
            resource: ApiResource::erase::<J>(&()),
            definition: J::definition,
            manage: Operator::manage::<J>,
            controller: J::FRAMEWORK.controller,
            adjust,
            derive_schemas: Schemas::new::<J>,
            schemas: OnceLock::new(),
            check: check::<J>,
        });
        self
    }

    /// Adds the jobs of a manifest: all its documents. Kinds have to be added before.
    ///
    /// # Errors
    /// [`RunError::Manifest`], with everything that is wrong in it: it is no YAML, or an object is no valid job of a kind
    /// that is here, or is there twice.
    pub fn yaml(self, text: &str) -> Result<Self, RunError> {
        self.manifest("<yaml>", text)
    }

    /// Adds the jobs of the manifest `text`, as [`yaml`](Self::yaml) does. `file` is its name in errors.
    ///
    /// # Errors
    /// As for [`yaml`](Self::yaml).
    pub fn manifest(mut self, file: &str, text: &str) -> Result<Self, RunError> {
        let (documents, syntax_error) = kube_manifest::parse_until_error(text);
        let mut findings = Vec::new();
        for document in &documents {
            if let Err(error) = self.add(&document.to_json()) {
                findings.extend(locate(file, document, &error));
            }
        }
        findings.extend(syntax_error.map(|error| Finding::from_syntax_error(file, &error)));
        match findings.is_empty() {
            true => Ok(self),
            false => Err(RunError::Manifest(findings)),
        }
    }

    /// Adds a job.
    ///
    /// # Errors
    /// It is no valid job of a kind that is here, or is there twice: two jobs of one name, of whatever kind,
    /// would share their pods' names.
    pub fn job(mut self, object: &Value) -> Result<Self, RunError> {
        self.add(object)?;
        Ok(self)
    }

    fn add(&mut self, object: &Value) -> Result<(), RunError> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let kind = text("kind");
        let group = text("apiVersion").split('/').next();
        let has_name = |k: &Kind| k.resource.kind == kind;
        let is_its = |k: &Kind| has_name(k) && Some(k.resource.group.as_str()) == group;
        // Of another group's kind of this name, the check below says that the API version is wrong.
        let place = self.kinds.iter().position(is_its);
        let Some(place) = place.or_else(|| self.kinds.iter().position(has_name)) else {
            return Err(RunError::Kind {
                kind: kind.to_owned(),
                known: self.known(),
            });
        };
        let known = &self.kinds[place];
        let schemas = known.schemas.get_or_init(known.derive_schemas);
        let job = (known.check)(schemas, object).map_err(|errors| RunError::Invalid {
            kind: kind.to_owned(),
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            errors,
        })?;
        let name = |job: &DynamicObject| (namespace_of(job), job.name_any());
        if self.jobs.iter().any(|(_, other)| name(other) == name(&job)) {
            return Err(RunError::Twice {
                kind: kind.to_owned(),
                name: job.name_any(),
            });
        }
        self.jobs.push((place, job));
        Ok(())
    }

    fn known(&self) -> String {
        let known: Vec<_> = self
            .kinds
            .iter()
            .map(|kind| kind.resource.kind.as_str())
            .collect();
        known.join(", ")
    }

    /// Starts the jobs, with processes as `config` has it. Its `adjust` is completed by
    /// what the kinds need ([`kind_adjusted`](Self::kind_adjusted)); `bind` and `grace_cap` have values of their own here. Must be
    /// called within a tokio runtime that has I/O and time enabled.
    ///
    /// # Errors
    /// There is no job, the machine lacks something that is needed, or the in-memory API refuses a job.
    pub async fn start(mut self, mut config: NodeConfig) -> Result<Run, RunError> {
        if self.jobs.is_empty() {
            return Err(RunError::Empty { known: self.known() });
        }
        let cluster = Cluster::builder().auto_namespaces().build();
        let client = cluster.client("default");
        let is_used = |place: usize| self.jobs.iter().any(|(of, _)| *of == place);
        let used = self.kinds.iter().enumerate().filter(|(place, _)| is_used(*place));
        let used: Vec<_> = used.map(|(_, kind)| kind).collect();
        let definitions = Api::<CustomResourceDefinition>::all(client.clone());
        let mut operator = Operator::new(client.clone(), options());
        for kind in &used {
            // Without its rules, which the in-memory API would not look at.
            let definition = (kind.definition)();
            let created = definitions.create(&PostParams::default(), &definition).await;
            created.map_err(|error| RunError::Refused {
                what: kind.resource.kind.clone(),
                error,
            })?;
            operator = (kind.manage)(operator);
            config.adjust.insert(kind.controller.to_owned(), kind.adjust);
        }
        config.bind = Bind::Any;
        config.grace_cap = Some(GRACE);
        // The watches begin before there is anything to see.
        let changes = changes(&client, &used);
        let (lines, output) = mpsc::channel(WAITING_LINES);
        let node = Node::start(client.clone(), config, lines)?;
        let run = Run {
            client: client.clone(),
            ledger: Ledger::default(),
            stage: Stage::Playing {
                node,
                operator: Abort(tokio::spawn(operator.run()).abort_handle()),
                give_up: None,
            },
            changes,
            output,
            waiting: VecDeque::new(),
        };
        run.with(std::mem::take(&mut self.jobs), &self.kinds).await
    }
}

/// Checks a job as it is written in a manifest, and returns it with all its fields.
fn check<J: TrainingJob>(schemas: &Schemas, object: &Value) -> Result<DynamicObject, FieldErrors> {
    let checked = manifest::check::<J>(schemas, object)?;
    let complete = serde_json::to_value(&checked.job).and_then(serde_json::from_value);
    complete.map_err(|error| {
        let mut errors = FieldErrors::default();
        errors.push("", error.to_string(), "");
        errors
    })
}

/// What is wrong with a document, each error with the line of its field.
fn locate(file: &str, document: &Document, error: &RunError) -> Vec<Finding> {
    let mut errors = FieldErrors::default();
    match error {
        RunError::Invalid { errors: all, .. } => errors = all.clone(),
        RunError::Kind { kind, .. } if kind.is_empty() => {
            errors.push("kind", "it is missing, or no string", "say what the object is");
        }
        RunError::Kind { .. } => errors.push("kind", error.to_string(), ""),
        _ => errors.push("", error.to_string(), ""),
    }
    let errors = errors.into_iter().map(|e| (e.path, e.problem, e.remedy));
    Finding::locate(file, Severity::Error, document, errors)
}

fn namespace_of(job: &impl ResourceExt) -> String {
    job.namespace().unwrap_or_else(|| "default".to_owned())
}

fn options() -> Options {
    Options {
        settings: Settings {
            linger: LINGER,
            ..Settings::default()
        },
        ..Options::default()
    }
}

enum Change {
    Job(Box<DynamicObject>),
    Pod { pod: Box<Pod>, gone: bool },
}

fn changes(client: &Client, kinds: &[&Kind]) -> BoxStream<'static, Change> {
    let jobs = kinds.iter().map(|kind| {
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind.resource);
        watcher::watcher(api, watcher::Config::default()).boxed()
    });
    let jobs = stream::select_all(jobs).filter_map(async |event| match event {
        Ok(Event::Apply(job) | Event::InitApply(job)) => Some(Change::Job(Box::new(job))),
        _ => None,
    });
    let pods = watcher::watcher(Api::<Pod>::all(client.clone()), watcher::Config::default());
    let pods = pods.filter_map(async |event| {
        let (pod, gone) = match event.ok()? {
            Event::Apply(pod) | Event::InitApply(pod) => (pod, false),
            Event::Delete(pod) => (pod, true),
            _ => return None,
        };
        Some(Change::Pod {
            pod: Box::new(pod),
            gone,
        })
    });
    stream::select(jobs, pods).boxed()
}

/// A task that ends with its owner.
struct Abort(AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Jobs that run on this machine. Dropping it kills their processes.
pub struct Run {
    client: Client,
    ledger: Ledger,
    stage: Stage,
    changes: BoxStream<'static, Change>,
    output: mpsc::Receiver<NodeEvent>,
    /// What is to be told next.
    waiting: VecDeque<RunEvent>,
}

enum Stage {
    Playing {
        node: Node,
        operator: Abort,
        /// When replicas that are to go have had their time: all jobs have ended.
        give_up: Option<Instant>,
    },
    /// Gives the pods that are left.
    Stopping(BoxFuture<'static, Vec<Pod>>),
    Ended,
}

impl Run {
    async fn with(mut self, jobs: Vec<(usize, DynamicObject)>, kinds: &[Kind]) -> Result<Self, RunError> {
        for (place, job) in jobs {
            self.ledger.expect(&job);
            let api = Api::namespaced_with(self.client.clone(), &namespace_of(&job), &kinds[place].resource);
            let created = api.create(&PostParams::default(), &job).await;
            created.map_err(|error| RunError::Refused {
                what: format!("{} {}", kinds[place].resource.kind, job.name_any()),
                error,
            })?;
        }
        Ok(self)
    }

    /// What happens next; `None` once all jobs have ended, or can never go on, and no process is left. It
    /// has to be called all the time: processes that write faster than it is called are slowed down. It may be
    /// dropped and called again.
    pub async fn next(&mut self) -> Option<RunEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            match &mut self.stage {
                Stage::Playing { give_up, .. } => {
                    if give_up.is_none() && self.ledger.all_settled() {
                        *give_up = Some(Instant::now() + GRACE);
                    }
                    let quiet = give_up.is_some() && self.ledger.is_quiet() && self.output.is_empty();
                    if quiet || give_up.is_some_and(|at| at <= Instant::now()) {
                        self.stop();
                        continue;
                    }
                }
                Stage::Stopping(_) => {}
                Stage::Ended => return self.output.try_recv().ok().map(RunEvent::Node),
            }
            let stage = async {
                match &mut self.stage {
                    Stage::Playing {
                        give_up: Some(at), ..
                    } => {
                        sleep_until(*at).await;
                        None
                    }
                    Stage::Stopping(stopping) => Some(stopping.await),
                    Stage::Playing { .. } | Stage::Ended => std::future::pending().await,
                }
            };
            tokio::select! {
                // Processes that write without pause must not hold up the rest.
                biased;
                left = stage => if let Some(left) = left {
                    self.stage = Stage::Ended;
                    for pod in left {
                        self.take(Change::Pod { pod: Box::new(pod), gone: false });
                    }
                },
                Some(change) = self.changes.next() => self.take(change),
                Some(event) = self.output.recv() => return Some(RunEvent::Node(event)),
            }
        }
    }

    /// Ends all processes in order: SIGTERM, 5 s, SIGKILL. [`next`](Self::next) tells the rest; jobs stay as they are.
    /// It is done by itself when all jobs have ended.
    pub fn stop(&mut self) {
        if let Stage::Playing { node, operator, .. } = std::mem::replace(&mut self.stage, Stage::Ended) {
            // What is stopped now says nothing about the jobs.
            drop(operator);
            let pods = Api::<Pod>::all(self.client.clone());
            let stopping = async move {
                node.shutdown(GRACE).await;
                // Watches may be behind. The in-memory API always answers.
                let left = pods.list(&ListParams::default()).await;
                left.map(|list| list.items).unwrap_or_default()
            };
            self.stage = Stage::Stopping(stopping.boxed());
        }
    }

    /// Whether all jobs have succeeded.
    pub fn succeeded(&self) -> bool {
        self.ledger.all_succeeded()
    }

    /// The jobs' statuses by name, as far as [`next`](Self::next) has come.
    pub fn statuses(&self) -> impl Iterator<Item = (&str, &JobStatus)> {
        self.ledger.statuses()
    }

    /// Why jobs that have not ended never will: they are suspended, or a replica cannot start on this machine.
    pub fn dead_ends(&self) -> Vec<String> {
        self.ledger.dead_ends()
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Job(job) => self.waiting.extend(self.ledger.job(&job)),
            Change::Pod { pod, gone } => {
                let dead_end = self.ledger.pod(&pod, gone);
                self.waiting.push_back(RunEvent::Pod { pod, gone, dead_end });
            }
        }
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}
