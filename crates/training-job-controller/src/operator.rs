//! The run loop: starts the watches first, then the workers that reconcile queued jobs.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, join_all, select_all};
use futures::stream::FuturesUnordered;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use kube_follow::{CallTimeout, DEFAULT_SILENCE_TIMEOUT, Gate};
use training_job::job::{GangScheduler, Kind, ObjectKind, Settings, TrainingJob};
use training_job::plan::ChildKind;
use training_job::plan::observed::{ObjectRecord, PodRecord, ServiceRecord};

use super::cache::children::Children;
use super::calls::CallLimiter;
use super::clock::{Clock, SystemClock};
use super::context::Context;
use super::events::Recorder;
use super::finished::FinishedJobs;
use super::freed_capacity::FreedCapacity;
use super::metrics::Metrics;
use super::missing_permissions::MissingPermissions;
use super::output::OutputReader;
use super::queue::Queue;
use super::quota_queue::QuotaQueue;
use super::reconcile::reconcile;
use super::reconciler::{FirstList, JobReconciler};

/// The time that calls in flight have to finish when the operator stops.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a job is tried again whose kind lacks the right to list what it needs.
const RECHECK_LISTS: Duration = Duration::from_secs(1);

/// Options of an operator.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The namespace to work in; all if unset.
    pub namespace: Option<String>,
    /// Settings that apply to every job.
    pub settings: Settings,
    /// Number of jobs reconciled at once, at least 1; default 16.
    pub concurrency: usize,
    /// Maximum number of writes in flight for all jobs together, at least 1; default 16. The operator halves it while
    /// the API server is overloaded or does not respond.
    pub calls: usize,
    /// Timeout of one API call; default 30 s. A call that takes longer is abandoned, and the next reconcile finds out
    /// whether it took effect.
    pub call_timeout: Duration,
    /// The gate of the client, closed while the server is away; by default the client has none, and it is always open.
    pub gate: Gate,
    /// Time without data after which a watch counts as dead and is restarted; default 130 s. The server is requested
    /// to end the watch a little earlier. An API server sends something each minute: a shorter timeout restarts
    /// healthy watches too, and only detects dead connections sooner.
    pub watch_timeout: Duration,
    /// Source of the current time; default the system clock.
    pub clock: Arc<dyn Clock>,
    /// Metrics that the operator updates; by default they are not exported.
    pub metrics: Metrics,
    /// The remedy at the end of the log line about missing permissions; by default, to grant them to the service account
    /// of the operator.
    pub permissions_remedy: String,
    /// The remedy in the notice of a job whose output the operator may not read; by default, to grant the right to the
    /// service account of the operator.
    pub logs_remedy: String,
    /// Keeps the jobs that have finished; by default, nothing does.
    pub finished_jobs: Option<Arc<dyn FinishedJobs>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            settings: Settings::default(),
            concurrency: 16,
            calls: 16,
            call_timeout: CallTimeout::default().0,
            gate: Gate::default(),
            watch_timeout: DEFAULT_SILENCE_TIMEOUT,
            clock: Arc::new(SystemClock),
            metrics: Metrics::default(),
            permissions_remedy: "grant them to the service account of the operator".to_owned(),
            logs_remedy: "grant get on pods/log to the service account of the operator".to_owned(),
            finished_jobs: None,
        }
    }
}

/// An operator for any number of kinds of jobs.
///
/// The client should not retry by itself (`kube::Config::default_retry = false`), because the operator makes every
/// retry, per job and with bounds.
pub struct Operator {
    pub(super) context: Context,
    pub(super) kinds: Vec<JobReconciler>,
    ready: watch::Sender<bool>,
}

/// The first list of a kind of objects that the jobs of a kind need.
#[derive(Clone)]
struct NeededList {
    list: watch::Receiver<FirstList>,
    /// True if only some jobs of the kind have such objects. They report what is denied when they create one.
    may_be_denied: bool,
}

impl Operator {
    /// Creates an operator without kinds.
    pub fn new(client: Client, options: Options) -> Self {
        let timeout = CallTimeout(options.call_timeout);
        let calls = CallLimiter::new(options.calls, timeout, options.gate);
        let output = OutputReader::new(
            client.clone(),
            calls.clone(),
            options.metrics.clone(),
            options.logs_remedy,
        );
        let context = Context {
            output,
            recorder: Recorder::new(client.clone(), calls.clone(), options.metrics.clone()),
            client,
            timeout,
            watch_timeout: options.watch_timeout,
            namespace: options.namespace,
            settings: options.settings,
            children: Mutex::new(Children::new(options.clock.clone())),
            clock: options.clock,
            queue: Queue::new(options.concurrency, options.metrics.queue_depth()),
            calls,
            metrics: options.metrics,
            freed_capacity: FreedCapacity::default(),
            quota_queue: QuotaQueue::default(),
            missing_permissions: MissingPermissions::new(options.permissions_remedy),
            finished_jobs: options.finished_jobs,
        };
        Self {
            context,
            kinds: Vec::new(),
            ready: watch::Sender::new(false),
        }
    }

    /// Adds the jobs of type `J`.
    #[must_use]
    pub fn manage<J: TrainingJob>(self) -> Self {
        self.manage_kind(Kind::of::<J>())
    }

    /// Adds the jobs of a kind.
    #[must_use]
    pub fn manage_kind(mut self, kind: Kind) -> Self {
        let (number, metrics) = (self.kinds.len(), &self.context.metrics);
        let namespace = self.context.namespace.as_deref().unwrap_or_default();
        metrics.add_kind(kind.framework.name, namespace);
        self.kinds
            .push(JobReconciler::new(Arc::new(kind), number, metrics));
        self
    }

    /// Returns a receiver that becomes true when the first lists of all kinds are complete.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs forever. Dropping the future stops the operator between two calls; the next operator continues its work.
    pub async fn run(self) {
        self.run_until(std::future::pending()).await;
    }

    /// Runs until `stop` completes. Then it finishes the reconciles in progress and sends the queued events, but starts no
    /// reconcile. Calls that take longer than 10 s are abandoned.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) {
        let context = &self.context;
        // The lists that all jobs need, and those that each kind needs as well.
        let mut common = Vec::new();
        let mut of_kinds: Vec<Vec<NeededList>> = Vec::new();
        let mut watches: Vec<BoxFuture<'_, ()>> = Vec::new();
        for kind in &self.kinds {
            let done = FirstList::sender();
            of_kinds.push(vec![NeededList {
                list: done.subscribe(),
                may_be_denied: false,
            }]);
            watches.push(Box::pin(self.watch_jobs(kind, done)));
        }
        let gangs = context
            .settings
            .gang_scheduler
            .as_ref()
            .map(GangScheduler::pod_group);
        for child in self.child_kinds() {
            let done = FirstList::sender();
            match child {
                ChildKind::Object(object) => {
                    for (lists, JobReconciler { kind, .. }) in of_kinds.iter_mut().zip(&self.kinds) {
                        if gangs == Some(object) || kind.objects().contains(&object) {
                            lists.push(NeededList {
                                list: done.subscribe(),
                                may_be_denied: self.is_optional(child),
                            });
                        }
                    }
                }
                ChildKind::Pod | ChildKind::Service => common.push(done.subscribe()),
            }
            watches.push(match child {
                ChildKind::Pod => Box::pin(self.watch_children::<PodRecord>(child, done)),
                ChildKind::Service => Box::pin(self.watch_children::<ServiceRecord>(child, done)),
                ChildKind::Object(_) => Box::pin(self.watch_children::<ObjectRecord>(child, done)),
            });
        }
        let lists = async {
            // The senders live as long as the watches, and these never end.
            for list in &mut common {
                let _ = list.wait_for(|list| *list == FirstList::Complete).await;
            }
            for needed in of_kinds.clone().iter_mut().flatten() {
                let _ = needed.list.wait_for(|list| *list != FirstList::Pending).await;
            }
            let of_kind = |mut lists: Vec<NeededList>| {
                Box::pin(async move {
                    for NeededList { list, may_be_denied } in &mut lists {
                        let _ = list.wait_for(|list| list.suffices(*may_be_denied)).await;
                    }
                })
            };
            if !of_kinds.is_empty() {
                select_all(of_kinds.iter().cloned().map(of_kind)).await;
            }
        };
        let work = async {
            let mut stop = pin!(stop);
            tokio::select! {
                biased;
                () = &mut stop => return Instant::now(),
                () = lists => {},
            }
            self.ready.send_replace(true);
            self.work(stop, &of_kinds).await
        };
        let work = async {
            let end = work.await;
            context.recorder.close(end);
        };
        // Biased in this order, so that a reconcile sees everything received so far, and equal runs have the same
        // order.
        tokio::select! {
            biased;
            _ = join_all(watches) => {},
            () = context.missing_permissions.run() => {},
            () = context.keep_finished_jobs() => {},
            () = context.output.run(&context.queue) => {},
            _ = async { tokio::join!(biased; work, context.recorder.run()) } => {},
        }
    }

    /// Returns true if only jobs of a variant have such objects.
    pub(super) fn is_optional(&self, child: ChildKind) -> bool {
        Kind::only_variants_have(self.kinds.iter().map(|of| &*of.kind), child.object_kind())
    }

    /// Returns the child kinds of all job kinds, without duplicates.
    fn child_kinds(&self) -> Vec<ChildKind> {
        let mut objects: BTreeSet<ObjectKind> = self.kinds.iter().flat_map(|of| of.kind.objects()).collect();
        let gangs = self.context.settings.gang_scheduler.as_ref();
        objects.extend(gangs.map(GangScheduler::pod_group));
        let objects = objects.into_iter().map(ChildKind::from);
        let objects = objects.filter(|kind| matches!(kind, ChildKind::Object(_)));
        [ChildKind::Pod, ChildKind::Service]
            .into_iter()
            .chain(objects)
            .collect()
    }

    /// Reconciles jobs until `stop` completes, then finishes the reconciles in progress. Returns the deadline for all
    /// calls. Jobs of kinds without all of their lists wait.
    async fn work(
        &self,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
        lists: &[Vec<NeededList>],
    ) -> Instant {
        let is_known = |needed: &NeededList| needed.list.borrow().suffices(needed.may_be_denied);
        let mut reconciles = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(key) = reconciles.next() => self.context.queue.done(&key),
                (key, waited) = self.context.queue.next() => {
                    if !lists.get(key.kind).is_some_and(|lists| lists.iter().all(is_known)) {
                        self.context.queue.done(&key);
                        self.context.queue.add_at(key, Instant::now() + RECHECK_LISTS);
                        continue;
                    }
                    reconciles.push(async move {
                        if let Some(kind) = self.kinds.get(key.kind) {
                            reconcile(kind, &self.context, &key, waited).await;
                        }
                        key
                    });
                }
            }
        }
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        let rest = async { while reconciles.next().await.is_some() {} };
        if timeout_at(end, rest).await.is_err() {
            tracing::warn!("abandoned the calls in flight; the next leader reads their outcome");
        }
        end
    }
}
