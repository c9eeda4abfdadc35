//! The run loop: watches first, then workers that reconcile what is in the queue.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use kube::Client;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::job::{GangScheduler, ObjectKind, Settings, TrainingJob};
use crate::plan::ChildKind;
use crate::plan::observed::{ObjectRecord, PodRecord, ServiceRecord};
use kube_follow::CallTimeout;
use kube_follow::SILENCE;

use super::cache::children::Children;
use super::calls::Calls;
use super::clock::{Clock, SystemClock};
use super::context::Context;
use super::events::Recorder;
use super::metrics::Metrics;
use super::queue::Queue;
use super::reconciler::{Boxed, JobReconciler, Reconciler};
use super::room::Room;

/// How long what is under way may take when the operator is to stop.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// How the operator runs.
#[derive(Clone)]
pub struct Options {
    /// The namespace to work in; all if unset.
    pub namespace: Option<String>,
    /// Settings that bear on every job.
    pub settings: Settings,
    /// Jobs in work at once, at least 1; default 16.
    pub concurrency: usize,
    /// Writes under way at once, for all jobs together, at least 1; default 64. There are fewer if the server answers later
    /// the more there are.
    pub calls: usize,
    /// How long one API call may take; default 30 s. A call that takes longer is given up, and what became of
    /// it is found out by the next reconcile.
    pub call_timeout: Duration,
    /// How long a watch may be silent until it is taken for dead and begun anew; default 130 s. The server is
    /// asked to end it a little earlier by itself. A real one says something each minute: less than that
    /// costs connections and shows nothing sooner but dead ones.
    pub watch_timeout: Duration,
    /// Where the time comes from; default the system's clock.
    pub clock: Arc<dyn Clock>,
    /// What is counted; default: counters that nobody reads.
    pub metrics: Metrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            settings: Settings::default(),
            concurrency: 16,
            calls: 64,
            call_timeout: CallTimeout::default().0,
            watch_timeout: SILENCE,
            clock: Arc::new(SystemClock),
            metrics: Metrics::default(),
        }
    }
}

/// An operator for any number of kinds of jobs.
///
/// The client should not repeat calls by itself (`kube::Config::default_retry = false`): every retry
/// is the operator's, per job and bounded.
pub struct Operator {
    pub(super) context: Context,
    pub(super) kinds: Vec<Box<dyn Reconciler>>,
    ready: watch::Sender<bool>,
}

impl Operator {
    /// An operator without kinds.
    pub fn new(client: Client, options: Options) -> Self {
        let timeout = CallTimeout(options.call_timeout);
        let calls = Calls::new(options.calls, timeout);
        let context = Context {
            recorder: Recorder::new(client.clone(), calls.clone()),
            client,
            timeout,
            watch_timeout: options.watch_timeout,
            namespace: options.namespace,
            settings: options.settings,
            children: Mutex::new(Children::new(options.clock.clone())),
            clock: options.clock,
            queue: Queue::new(options.concurrency),
            calls,
            metrics: options.metrics,
            room: Room::default(),
        };
        Self {
            context,
            kinds: Vec::new(),
            ready: watch::Sender::new(false),
        }
    }

    /// Takes on the jobs of type `J`.
    #[must_use]
    pub fn manage<J: TrainingJob>(mut self) -> Self {
        let number = self.kinds.len();
        self.kinds.push(Box::new(JobReconciler::<J>::new(number)));
        self
    }

    /// Tells whether the first lists of all kinds are complete.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs for ever. Dropping the future stops the operator between two calls; what it was about to
    /// do, the next one does.
    pub async fn run(self) {
        self.run_until(std::future::pending()).await;
    }

    /// Runs until `stop` is done; then finishes what is under way, but begins nothing. Calls that take
    /// longer than 10 s are abandoned.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) {
        let context = &self.context;
        let mut listed = Vec::new();
        let mut watches: Vec<Boxed<'_>> = Vec::new();
        for kind in &self.kinds {
            let done = watch::Sender::new(false);
            listed.push(done.subscribe());
            watches.push(kind.watch(context, done));
        }
        for child in self.child_kinds() {
            let done = watch::Sender::new(false);
            listed.push(done.subscribe());
            watches.push(match child {
                ChildKind::Pod => Box::pin(self.watch_children::<PodRecord>(child, done)),
                ChildKind::Service => Box::pin(self.watch_children::<ServiceRecord>(child, done)),
                ChildKind::Object(_) => Box::pin(self.watch_children::<ObjectRecord>(child, done)),
            });
        }
        let lists = async {
            for mut list in listed {
                // The senders live as long as the watches, which never end.
                let _ = list.wait_for(|done| *done).await;
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
            self.work(stop).await
        };
        let work = async {
            let end = work.await;
            context.recorder.close(end);
        };
        // In this order, so that a reconcile knows all that has come: in the same order for the same run.
        tokio::select! {
            biased;
            _ = join_all(watches) => {},
            _ = async { tokio::join!(biased; work, context.recorder.run()) } => {},
        }
    }

    /// What the jobs of all kinds have, each kind of child once.
    fn child_kinds(&self) -> Vec<ChildKind> {
        let mut objects: BTreeSet<ObjectKind> = self.kinds.iter().flat_map(|kind| kind.objects()).collect();
        let gangs = self.context.settings.gang_scheduler.as_ref();
        objects.extend(gangs.map(GangScheduler::pod_group));
        let objects = objects.into_iter().map(ChildKind::from);
        let objects = objects.filter(|kind| matches!(kind, ChildKind::Object(_)));
        [ChildKind::Pod, ChildKind::Service]
            .into_iter()
            .chain(objects)
            .collect()
    }

    /// Reconciles jobs until `stop` is done, and finishes what is under way then. Returns when all must have ended.
    async fn work(&self, mut stop: Pin<&mut (impl Future<Output = ()> + Send)>) -> Instant {
        let mut reconciles = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                Some(key) = reconciles.next() => self.context.queue.done(&key),
                (key, waited) = self.context.queue.next() => {
                    reconciles.push(async move {
                        if let Some(kind) = self.kinds.get(key.kind) {
                            kind.reconcile(&self.context, &key, waited).await;
                        }
                        key
                    });
                }
            }
        }
        let end = Instant::now() + SHUTDOWN;
        let rest = async { while reconciles.next().await.is_some() {} };
        if timeout_at(end, rest).await.is_err() {
            tracing::warn!("calls under way are abandoned; the next operator finds out what became of them");
        }
        end
    }
}
