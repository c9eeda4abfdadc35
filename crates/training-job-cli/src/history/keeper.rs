//! The queue of finished jobs, and the task that writes their stories.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};
use training_job_controller::{FinishedJob, FinishedJobs, LostStory, Metrics};
use training_job_kubectl::StoredJob;
use training_job_kubectl::story::{Directory, Entry, uid_of};
use training_job_review::Kind;

use super::bounds::Limits;
use super::collect::{Collected, collect, story};
use crate::kinds::Kinds;

/// The maximum number of finished jobs that wait. Their text is in the operator's cache as well.
const MAX_QUEUED: usize = 256;

/// The number of stories that are collected at the same time.
const CONCURRENCY: usize = 4;

/// The time for all reads of a job. The story lacks what was not read until then.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which stories are checked for their age.
const CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The maximum number of jobs without a story that are remembered, so that they are not tried again and again.
const MAX_FAILED: usize = 10_000;

/// Keeps the stories of finished jobs in a directory.
pub(super) struct Keeper {
    kept: Arc<Kept>,
    kinds: BTreeMap<String, Arc<Kind>>,
    queue: mpsc::Sender<FinishedJob>,
    queued: tokio::sync::Mutex<mpsc::Receiver<FinishedJob>>,
    /// The missing permissions that are in the log.
    denied: Mutex<BTreeSet<&'static str>>,
}

struct Kept {
    directory: Directory,
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// The UIDs of jobs that are queued, or whose stories were written or cannot be written.
    tried: HashSet<String>,
    /// The latest end of a job whose story was removed.
    removed: Option<Timestamp>,
}

impl Keeper {
    pub(super) fn new(directory: Directory, limits: Limits, kinds: &Kinds) -> Self {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        Self {
            kept: Arc::new(Kept {
                directory,
                limits,
                state: Mutex::default(),
            }),
            kinds: kinds
                .iter()
                .map(|kind| (kind.name().to_owned(), kind.clone()))
                .collect(),
            queue,
            queued: tokio::sync::Mutex::new(queued),
            denied: Mutex::default(),
        }
    }

    async fn keep(&self, job: FinishedJob, client: &Client, metrics: &Metrics) {
        let Some(kind) = self.kinds.get(&job.kind).cloned() else {
            return;
        };
        let (uid, children) = (job.uid.clone(), job.children.clone());
        // Kinds may take long for a large job, or panic.
        let of_kind = kind.clone();
        let stored = spawn_blocking(move || StoredJob::of_value(&of_kind, job.object()));
        let written = async {
            let stored = stored.await.map_err(io::Error::other)?;
            let read = timeout(READ_TIMEOUT, collect(client, &stored))
                .await
                .unwrap_or_else(|_| Collected::late());
            self.report_denied(&read.denied);
            let kept = self.kept.clone();
            let write = move || {
                let story = story(&kind, &stored, &children, &read, Timestamp::now());
                let entry = kept.directory.write(&story)?;
                kept.add(entry);
                io::Result::Ok(())
            };
            spawn_blocking(write).await.map_err(io::Error::other)?
        };
        match written.await {
            Ok(()) => self.kept.report(metrics),
            Err(error) => {
                metrics.story_lost(LostStory::Write);
                tracing::error!(uid, problem = %error, "failed to keep the story of a finished job");
            }
        }
    }

    /// Logs missing permissions, each once.
    fn report_denied(&self, denied: &BTreeSet<&'static str>) {
        let mut known = self.denied.lock();
        for permission in denied {
            if known.insert(permission) {
                tracing::warn!(
                    permission,
                    "the role of the operator does not allow this, so the stories of its history lack what it gives"
                );
            }
        }
    }
}

impl Kept {
    /// Reads which stories the directory has. The jobs of an earlier term that were not completed are tried again.
    fn begin(&self) {
        let read = self
            .directory
            .remove_parts()
            .and_then(|()| self.directory.entries());
        let entries = read.unwrap_or_else(|error| {
            tracing::error!(problem = %error, "failed to read the directory of the history");
            Vec::new()
        });
        {
            let mut state = self.state.lock();
            state.tried = entries
                .iter()
                .filter_map(|entry| uid_of(&entry.file))
                .map(str::to_owned)
                .collect();
            state.entries = entries;
        }
        self.remove_surplus();
    }

    fn add(&self, entry: Entry) {
        let mut state = self.state.lock();
        state.entries.retain(|other| other.file != entry.file);
        state.entries.push(entry);
        drop(state);
        self.remove_surplus();
    }

    fn remove_surplus(&self) {
        let removed = {
            let mut state = self.state.lock();
            let removed = self.limits.remove_surplus(&mut state.entries, Timestamp::now());
            let is_full = state.entries.len() >= self.limits.jobs;
            let oldest = state.entries.first().filter(|_| is_full).map(|entry| entry.at);
            state.removed = state
                .removed
                .max(removed.last().map(|entry| entry.at))
                .max(oldest);
            for uid in removed.iter().filter_map(|entry| uid_of(&entry.file)) {
                // The time of its end excludes the job from now on.
                state.tried.remove(uid);
            }
            removed
        };
        for entry in removed {
            if let Err(error) = self.directory.remove(&entry) {
                tracing::error!(file = entry.file, problem = %error, "failed to remove an old story");
            }
        }
    }

    fn report(&self, metrics: &Metrics) {
        let state = self.state.lock();
        metrics.history_has(
            state.entries.len(),
            state.entries.iter().map(|entry| entry.bytes).sum(),
        );
    }
}

#[async_trait]
impl FinishedJobs for Keeper {
    fn wants(&self, uid: &str, finished_at: Option<Timestamp>) -> bool {
        let state = self.kept.state.lock();
        let now = Timestamp::now();
        let ended = finished_at.unwrap_or(now);
        !state.tried.contains(uid) && !self.kept.limits.excludes(ended, state.removed, now)
    }

    fn add(&self, job: FinishedJob) -> bool {
        let uid = job.uid.clone();
        let is_added = self.queue.try_send(job).is_ok();
        if is_added {
            let mut state = self.kept.state.lock();
            if state.tried.len() >= state.entries.len() + MAX_FAILED {
                let kept = state
                    .entries
                    .iter()
                    .filter_map(|entry| uid_of(&entry.file))
                    .map(str::to_owned);
                state.tried = kept.collect();
            }
            state.tried.insert(uid);
        }
        is_added
    }

    async fn run(&self, client: Client, metrics: Metrics) {
        let mut queued = self.queued.lock().await;
        while queued.try_recv().is_ok() {}
        self.kept.begin();
        self.kept.report(&metrics);
        let jobs = futures::stream::poll_fn(|context| queued.poll_recv(context));
        let write = jobs.for_each_concurrent(CONCURRENCY, |job| self.keep(job, &client, &metrics));
        let check = async {
            let mut due = interval(CHECK_INTERVAL);
            due.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                due.tick().await;
                let kept = self.kept.clone();
                let _ = spawn_blocking(move || kept.remove_surplus()).await;
                self.kept.report(&metrics);
            }
        };
        tokio::select! {
            () = write => {}
            () = check => {}
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper")
            .field("directory", &self.kept.directory)
            .finish_non_exhaustive()
    }
}
