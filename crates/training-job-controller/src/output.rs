//! Reads the output of the pods that plans watch: the end of each log, at an interval of its own. No stream is held open.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::io::AsyncReadExt;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::LogParams;
use kube::{Api, Client};
use kube_follow::CallError;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use training_job::output::{OutputRecord, Unread};
use training_job::plan::{OutputWatch, WatchedPod};
use training_job::validate::Progress;

use super::calls::{CallLimiter, Urgency};
use super::metrics::Metrics;
use super::queue::{Key, Queue};

/// The maximum number of reads at once. Others wait, so unresponsive nodes do not use up all connections.
const MAX_READS: usize = 32;

/// The time in which a node must respond. The timeout of the API server itself is longer.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of lines of the end of a log that are read at once.
const TAIL_LINES: usize = 200;

/// The maximum size of the end of a log that is read at once, in bytes. If the tail has
/// more, the server cuts off its end, and the next read requests fewer lines.
const TAIL_BYTES: usize = 256 << 10;

/// The number of lines that always fit, because container runtimes split lines after 16 KiB.
const FEWEST_TAIL_LINES: usize = 10;

/// The readers of all watched pods.
pub(super) struct OutputReader {
    client: Client,
    calls: CallLimiter,
    metrics: Metrics,
    /// The remedy if the operator may not read logs.
    remedy: String,
    started: Instant,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The watches by the UID of the job.
    jobs: HashMap<String, Job>,
    /// The pods to read, by time: the name of the pod, and the UID of its job. An entry with another time than that of its
    /// reader is outdated.
    due: BTreeSet<(Instant, String, String)>,
}

struct Job {
    key: Key,
    watch: OutputWatch,
    /// The pods by name.
    pods: BTreeMap<String, Reader>,
}

struct Reader {
    pod: WatchedPod,
    record: Arc<OutputRecord>,
    /// The time of the last progress, or of the first watch of this run of the container.
    silent_since: Instant,
    /// The time of the next read.
    due: Instant,
    /// The number of lines that are read at once.
    tail: usize,
}

/// A read that is due.
struct Read {
    job: String,
    key: Key,
    pod: WatchedPod,
    parameters: LogParams,
    /// The time up to which a log without news proves silence.
    begun: Instant,
}

impl OutputReader {
    /// Creates a reader of no pods.
    pub(super) fn new(client: Client, calls: CallLimiter, metrics: Metrics, remedy: String) -> Self {
        Self {
            client,
            calls,
            metrics,
            remedy,
            started: Instant::now(),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// Reads the output of these pods of a job from now on, and of no others.
    pub(super) fn watch(&self, key: &Key, job: &ObjectMeta, watch: Option<OutputWatch>) {
        let uid = job.uid.as_deref().unwrap_or_default();
        let mut state = self.state.lock();
        let Some(watch) = watch else {
            state.jobs.remove(uid);
            return;
        };
        let State { jobs, due } = &mut *state;
        let job = jobs.entry(uid.to_owned()).or_insert_with(|| Job {
            key: key.clone(),
            watch: watch.clone(),
            pods: BTreeMap::new(),
        });
        let wanted: HashSet<&str> = watch.pods.iter().map(|pod| pod.name.as_str()).collect();
        let (is_changed, interval) = (job.watch.progress != watch.progress, watch.progress.interval());
        let mut is_new = false;
        job.pods
            .retain(|pod, _| wanted.contains(pod.as_str()) && !is_changed);
        for pod in &watch.pods {
            if job.pods.get(&pod.name).is_some_and(|reader| reader.pod == *pod) {
                continue;
            }
            let now = Instant::now();
            let first = now + spread(&key.namespace, &pod.name, interval);
            let record = OutputRecord::of(&pod.uid, pod.restarts);
            let reader = Reader {
                pod: pod.clone(),
                record: Arc::new(record),
                silent_since: now,
                due: first,
                tail: TAIL_LINES,
            };
            job.pods.insert(pod.name.clone(), reader);
            due.insert((first, pod.name.clone(), uid.to_owned()));
            is_new = true;
        }
        job.watch = watch;
        drop(state);
        if is_new {
            self.changed.notify_one();
        }
    }

    pub(super) fn forget(&self, job: &str) {
        self.state.lock().jobs.remove(job);
    }

    /// Returns the records of a job's pods that were read, by name. `None` for a job that is not watched.
    pub(super) fn records(&self, job: &str) -> Option<BTreeMap<String, Arc<OutputRecord>>> {
        let state = self.state.lock();
        let pods = state.jobs.get(job)?.pods.values();
        let read = pods.filter(|reader| reader.record.is_read || reader.record.unread.is_some());
        Some(
            read.map(|reader| (reader.pod.name.clone(), reader.record.clone()))
                .collect(),
        )
    }

    /// Makes the reads that are due, forever. Queues the jobs with news.
    pub(super) async fn run(&self, queue: &Queue) {
        let mut reads = FuturesUnordered::new();
        loop {
            let changed = self.changed.notified();
            let (ready, next) = self.state.lock().take_due(MAX_READS.saturating_sub(reads.len()));
            for read in ready {
                reads.push(async move {
                    let log = self.read(&read).await;
                    (read, log)
                });
            }
            let is_full = reads.len() >= MAX_READS;
            let wait = async {
                match next.filter(|_| !is_full) {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((read, log)) = reads.next() => self.record(queue, &read, log),
                () = changed => {},
                () = wait => {},
            }
        }
    }

    async fn read(&self, read: &Read) -> Result<String, CallError> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &read.key.namespace);
        let request = async {
            let log = api.log_stream(&read.pod.name, &read.parameters).await?;
            let mut bytes = Vec::new();
            let read = log.take(TAIL_BYTES as u64).read_to_end(&mut bytes).await;
            read.map_err(kube::Error::ReadEvents)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let request = timeout(READ_TIMEOUT, request.boxed()).map(|answer| {
            let late = || {
                std::io::Error::new(
                    std::io::ErrorKind::TimedOut,
                    "the node did not respond within 10 s",
                )
            };
            answer.unwrap_or_else(|_| Err(kube::Error::ReadEvents(late())))
        });
        self.calls.call(Urgency::Output, &read.job, 0, request).await
    }

    /// Records the result of a read, and plans the next one. The job is reconciled if the result is news.
    fn record(&self, queue: &Queue, read: &Read, log: Result<String, CallError>) {
        let mut state = self.state.lock();
        let State { jobs, due } = &mut *state;
        let Some(job) = jobs.get_mut(&read.job) else {
            return;
        };
        let Some(reader) = job
            .pods
            .get_mut(&read.pod.name)
            .filter(|reader| reader.pod == read.pod)
        else {
            return;
        };
        let (now, mut has_advanced) = (Instant::now(), false);
        let (progress, unread) = (&job.watch.progress, reader.record.unread.clone());
        let record = Arc::make_mut(&mut reader.record);
        match log {
            // The end of the tail is missing. The next read requests fewer lines.
            Ok(log) if log.len() >= TAIL_BYTES => reader.tail = (reader.tail / 2).max(FEWEST_TAIL_LINES),
            Ok(log) => {
                has_advanced = record.add(&log, progress.pattern.as_ref());
                if has_advanced {
                    reader.silent_since = now;
                }
                record.silent_for = read.begun.saturating_duration_since(reader.silent_since);
                record.silent_since = reader.silent_since - self.started;
                self.metrics.read_output(record.silent_for);
            }
            // The watch reports that the container or the pod is gone. A server that is away says nothing about the node.
            Err(error) if matches!(error.code(), Some(400 | 404)) || matches!(error, CallError::Away) => {}
            Err(error) if error.code() == Some(403) => {
                record.unread = Some(Unread::Denied(self.remedy.clone()));
            }
            Err(error) => record.unread = Some(Unread::Unavailable(error.to_string())),
        }
        let limit = progress.limit(record.has_begun);
        let is_long = limit.is_some_and(|limit| record.silent_for >= limit);
        let is_news = has_advanced || is_long || record.unread != unread;
        reader.due = (reader.due + progress.interval()).max(now + progress.interval() / 2);
        due.insert((reader.due, read.pod.name.clone(), read.job.clone()));
        let key = job.key.clone();
        drop(state);
        if is_news {
            queue.add(key);
        }
    }
}

impl State {
    /// Takes up to `most` reads that are due. Returns them, and the time of the next one.
    fn take_due(&mut self, most: usize) -> (Vec<Read>, Option<Instant>) {
        let now = Instant::now();
        let mut reads = Vec::new();
        while reads.len() < most
            && let Some((at, pod, job)) = self.due.first()
            && *at <= now
        {
            let read = self.jobs.get(job).and_then(|of| {
                let reader = of.pods.get(pod).filter(|reader| reader.due == *at)?;
                Some(Read {
                    job: job.clone(),
                    key: of.key.clone(),
                    pod: reader.pod.clone(),
                    parameters: reader.parameters(&of.watch.progress),
                    begun: now,
                })
            });
            self.due.pop_first();
            reads.extend(read);
        }
        (reads, self.due.first().map(|(at, ..)| *at))
    }
}

impl Reader {
    fn parameters(&self, progress: &Progress) -> LogParams {
        // A node whose clock went back writes lines that are older than the last one. Before the job counts as stalled, they
        // are read as well.
        let limit = progress.limit(self.record.has_begun);
        let is_almost_stalled =
            limit.is_some_and(|limit| self.silent_since.elapsed() + progress.interval() * 2 >= limit);
        LogParams {
            container: Some(self.pod.container.clone()),
            timestamps: true,
            tail_lines: i64::try_from(self.tail).ok(),
            limit_bytes: i64::try_from(TAIL_BYTES).ok(),
            since_time: self.record.mark().filter(|_| !is_almost_stalled),
            ..LogParams::default()
        }
    }
}

/// Returns a time below `interval` that depends on the pod, so that the pods of many jobs are read one after the other.
fn spread(namespace: &str, pod: &str, interval: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (namespace, pod).hash(&mut hasher);
    let share = hasher.finish() % 1_000;
    interval * u32::try_from(share).unwrap_or_default() / 1_000
}
