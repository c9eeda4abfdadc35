//! Running jobs: their events and the end of the run.

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Event as JobEvent, Pod, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use training_job::Kind;
use training_job::api::JobStatus;
use training_job::offline;
use training_job_controller::Operator;

use super::progress::{Name, Progress, namespace_of};
use crate::{RunError, RunEvent};
use local_node::{Node, NodeEvent};

/// The time that remaining replicas have to end by themselves at the end of a run, and the longest time between SIGTERM
/// and SIGKILL.
pub(crate) const MAX_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// A change of an object in the API.
pub(super) enum Change {
    Job {
        name: Name,
        job: Box<DynamicObject>,
        status: Box<JobStatus>,
    },
    Pod {
        pod: Box<Pod>,
        gone: bool,
    },
    Event(Box<JobEvent>),
}

/// Returns the changes of all jobs of these kinds, and of all pods.
pub(super) fn changes<'a>(
    client: &Client,
    kinds: impl Iterator<Item = &'a Kind>,
) -> BoxStream<'static, Change> {
    let jobs = kinds.cloned().map(|kind| {
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind.resource);
        let events = watcher::watcher(api, watcher::Config::default());
        events
            .filter_map(move |event| {
                ready(match event {
                    Ok(Event::Apply(job) | Event::InitApply(job)) => Some(Change::Job {
                        name: (namespace_of(&job), job.name_any()),
                        status: Box::new(status(&kind, &job)),
                        job: Box::new(job),
                    }),
                    _ => None,
                })
            })
            .boxed()
    });
    let jobs = stream::select_all(jobs);
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
    let news = Api::<JobEvent>::all(client.clone());
    let news = watcher::watcher(news, watcher::Config::default());
    let news = news.filter_map(async |event| match event.ok()? {
        watcher::Event::Apply(event) | watcher::Event::InitApply(event) => {
            Some(Change::Event(Box::new(event)))
        }
        _ => None,
    });
    stream::select(stream::select(jobs, pods), news).boxed()
}

fn status(kind: &Kind, job: &DynamicObject) -> JobStatus {
    serde_json::to_value(job)
        .map(|job| offline::status(kind, &job))
        .unwrap_or_default()
}

/// A task that is aborted with its owner.
pub(crate) struct AbortOnDrop(pub(crate) JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Jobs that run on this machine. Dropping it kills their processes.
pub struct Run {
    client: Client,
    progress: Progress,
    stage: RunStage,
    changes: BoxStream<'static, Change>,
    output: mpsc::Receiver<NodeEvent>,
    /// The events to return next.
    waiting: VecDeque<RunEvent>,
}

enum RunStage {
    Running {
        node: Node,
        operator: AbortOnDrop,
        /// The time at which all jobs had ended. The remaining replicas are stopped some time later.
        ended_at: Option<Instant>,
    },
    /// Resolves to the pods that are left.
    Stopping(BoxFuture<'static, Vec<Pod>>),
    Ended,
}

impl Run {
    pub(super) fn new(
        client: Client,
        progress: Progress,
        node: Node,
        operator: Operator,
        changes: BoxStream<'static, Change>,
        output: mpsc::Receiver<NodeEvent>,
    ) -> Self {
        Self {
            client,
            progress,
            stage: RunStage::Running {
                node,
                operator: AbortOnDrop(tokio::spawn(operator.run())),
                ended_at: None,
            },
            changes,
            output,
            waiting: VecDeque::new(),
        }
    }

    pub(super) async fn create_job(
        &mut self,
        resource: &ApiResource,
        job: &DynamicObject,
    ) -> Result<(), RunError> {
        self.progress.add_job(job);
        self.create(resource, job).await
    }

    /// Creates a ConfigMap or Secret.
    pub(super) async fn create_config(&mut self, object: &DynamicObject) -> Result<(), RunError> {
        let resource = match &object.types {
            Some(types) if types.kind == "Secret" => ApiResource::erase::<Secret>(&()),
            _ => ApiResource::erase::<ConfigMap>(&()),
        };
        self.create(&resource, object).await
    }

    async fn create(&self, resource: &ApiResource, object: &DynamicObject) -> Result<(), RunError> {
        let api = Api::namespaced_with(self.client.clone(), &namespace_of(object), resource);
        let created = api.create(&PostParams::default(), object).await;
        created.map(drop).map_err(|error| RunError::Refused {
            what: format!("{} {}", resource.kind, object.name_any()),
            error,
        })
    }

    /// Returns the next event, or `None` once all jobs have ended, or can never continue, and no process is left.
    ///
    /// Call it all the time: processes that write faster than it is called are slowed down, as by a pipe. The future
    /// may be dropped and `next` called again; no event is lost.
    pub async fn next(&mut self) -> Option<RunEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let mut stop_at = None;
            match &mut self.stage {
                RunStage::Running { ended_at, .. } => {
                    if ended_at.is_none() && self.progress.all_jobs_ended_or_stuck() {
                        *ended_at = Some(Instant::now());
                    }
                    stop_at = ended_at.map(|at| at + self.progress.grace_period(MAX_GRACE_PERIOD));
                    let all_ended =
                        stop_at.is_some() && self.progress.all_replicas_ended() && self.output.is_empty();
                    if all_ended || stop_at.is_some_and(|at| at <= Instant::now()) {
                        self.stop();
                        continue;
                    }
                }
                RunStage::Stopping(_) => {}
                RunStage::Ended => return self.output.try_recv().ok().map(RunEvent::Node),
            }
            let stage = async {
                match &mut self.stage {
                    RunStage::Stopping(stopping) => Some(stopping.await),
                    RunStage::Running { .. } | RunStage::Ended => match stop_at {
                        Some(at) => {
                            sleep_until(at).await;
                            None
                        }
                        None => std::future::pending().await,
                    },
                }
            };
            tokio::select! {
                // Processes that write without pause must not delay the rest.
                biased;
                left = stage => if let Some(left) = left {
                    self.stage = RunStage::Ended;
                    for pod in left {
                        self.record(Change::Pod { pod: Box::new(pod), gone: false });
                    }
                },
                Some(change) = self.changes.next() => self.record(change),
                Some(event) = self.output.recv() => return Some(RunEvent::Node(event)),
            }
        }
    }

    /// Ends all processes: SIGTERM, and after 5 s SIGKILL. [`next`](Self::next) returns the events of that. Jobs keep
    /// their status. This happens by itself once all jobs have ended.
    pub fn stop(&mut self) {
        if let RunStage::Running {
            node, mut operator, ..
        } = std::mem::replace(&mut self.stage, RunStage::Ended)
        {
            // Pods that are stopped now must not change the jobs' statuses, so the operator ends first.
            operator.0.abort();
            let pods = Api::<Pod>::all(self.client.clone());
            let stopping = async move {
                // The operator's last work needs the client.
                let _ = (&mut operator.0).await;
                node.shutdown(MAX_GRACE_PERIOD).await;
                // Watches may be behind. The in-memory API always responds.
                let left = pods.list(&ListParams::default()).await;
                left.map(|list| list.items).unwrap_or_default()
            };
            self.stage = RunStage::Stopping(stopping.boxed());
        }
    }

    /// Returns true if all jobs have succeeded.
    pub fn succeeded(&self) -> bool {
        self.progress.all_succeeded()
    }

    /// Returns the jobs' names and statuses, as of the last event that [`next`](Self::next) returned.
    pub fn statuses(&self) -> impl Iterator<Item = (&str, &JobStatus)> {
        self.progress.statuses()
    }

    /// Returns the reasons that unfinished jobs will never end: they are suspended, or a replica cannot start on this
    /// machine.
    pub fn dead_ends(&self) -> Vec<String> {
        self.progress.dead_ends()
    }

    /// Records a change, and queues its events.
    fn record(&mut self, change: Change) {
        match change {
            Change::Job { name, job, status } => {
                self.waiting.push_back(RunEvent::Job(job));
                self.waiting.extend(self.progress.update_job(name, *status));
            }
            Change::Pod { pod, gone } => {
                let dead_end = self.progress.update_pod(&pod, gone);
                self.waiting.push_back(RunEvent::Pod { pod, gone, dead_end });
            }
            Change::Event(event) => {
                self.waiting.extend(warning(&event));
                self.waiting.push_back(RunEvent::Event(event));
            }
        }
    }
}

/// Returns a warning of the operator about a job, unless a condition of the job or the state of a pod says the same.
fn warning(event: &JobEvent) -> Option<RunEvent> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let is_warning = event.type_.as_deref() == Some("Warning");
    let kind = text(&event.involved_object.kind);
    let reason = text(&event.reason);
    // The pods' own events say when a container waits for its restart.
    let is_known = reason.starts_with(&kind) || reason == "CrashLoopBackOff";
    (is_warning && kind != "Pod" && !is_known).then(|| RunEvent::Warning {
        job: text(&event.involved_object.name),
        message: format!("{reason}: {}", text(&event.message)),
    })
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
