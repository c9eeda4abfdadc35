//! One pass over one job: observe, validate, plan, apply, report.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, Resource};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::JobStatus;
use crate::job::TrainingJob;
use crate::plan::observed::Observed;
use crate::plan::{Plan, PlannedEvent};
use kube_follow::Event;
use kube_follow::{CallError, backoff, millis};

use super::apply::{self, Applied, Applier, ApplyError};
use super::doubt::{self, Doubt};
use super::events;
use super::jobs::{Found, Jobs};
use super::lists::ObjectName;
use super::memory::Memory;
use super::queue::Key;
use super::report::{self, Written};
use super::shared::Shared;
use super::stored::Stored;

/// How long changes of mere counts are collected before they are written.
const COLLECT_COUNTS: Duration = Duration::from_secs(1);

/// The longest time until a job is looked at again for a time limit: clocks are set, and machines sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// A kind of jobs under this controller, whatever its type.
pub(super) trait Kind: Send + Sync {
    /// The kind's name, as in owner references.
    fn name(&self) -> String;
    /// The value of the label by which its children are watched.
    fn controller(&self) -> &'static str;
    /// Watches the jobs for ever; says when the first list is in.
    fn watch<'a>(&'a self, shared: &'a Shared, listed: watch::Sender<bool>) -> Boxed<'a>;
    /// One pass over one job that has waited for so long.
    fn reconcile<'a>(&'a self, shared: &'a Shared, key: &'a Key, waited: Duration) -> Boxed<'a>;
}

pub(super) type Boxed<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The jobs of type `J`.
pub(super) struct KindOf<J> {
    number: usize,
    jobs: Mutex<Jobs<J>>,
    memory: Mutex<BTreeMap<String, Memory>>,
}

/// How a pass ended.
enum End {
    /// All is as planned; look again then, if at all.
    Settled(Option<Instant>),
    /// The plan was carried out and another is due at once.
    Again,
    /// Something could not be done; look again after a while, or then if that is earlier.
    Failed(Problem, Option<Instant>),
}

/// What could not be done.
struct Problem {
    text: String,
    /// How long the server asks to be left alone, if it does.
    retry_after: Option<Duration>,
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self {
            text,
            retry_after: None,
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        Self {
            text: error.message(),
            retry_after: error.retry_after(),
        }
    }
}

impl<J: TrainingJob> KindOf<J> {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            jobs: Mutex::default(),
            memory: Mutex::default(),
        }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, Jobs<J>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, BTreeMap<String, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, (namespace, name): ObjectName) -> Key {
        Key {
            kind: self.number,
            namespace,
            name,
        }
    }

    fn forget(&self, shared: &Shared, namespace: &str, uid: &str) {
        self.memory().remove(uid);
        shared.children().forget(namespace, uid);
    }

    /// Takes what the watch tells.
    pub(super) fn take(&self, shared: &Shared, event: Event<Stored<J>>, listed: &watch::Sender<bool>) {
        match event {
            Event::ListStarted => self.jobs().list_begins(),
            Event::ListPage(version) => self.jobs().page(version),
            // The server names everything; an empty name in a path would mean all objects.
            Event::Listed(job) | Event::Applied(job) if job.meta().name.is_none() => drop(job),
            Event::Listed(job) => {
                let key = self.key(super::jobs::name(&job));
                let replaced = self.jobs().listed(job);
                replaced
                    .iter()
                    .for_each(|uid| self.forget(shared, &key.namespace, uid));
                shared.queue.add(key);
            }
            Event::ListDone => {
                let gone = self.jobs().list_ends();
                gone.iter()
                    .for_each(|((namespace, _), uid)| self.forget(shared, namespace, uid));
                listed.send_replace(true);
            }
            Event::Applied(job) => {
                let key = self.key(super::jobs::name(&job));
                let replaced = self.jobs().applied(job);
                replaced
                    .iter()
                    .for_each(|uid| self.forget(shared, &key.namespace, uid));
                shared.queue.add(key);
            }
            Event::Deleted(job) => {
                let uid = self.jobs().deleted(&job);
                self.forget(shared, &super::jobs::name(&job).0, &uid);
            }
            Event::Bookmark(version) => self.jobs().passed(version),
            Event::Failed => {}
        }
    }

    async fn pass(&self, shared: &Shared, key: &Key, waited: Duration) {
        let Some(stored) = self.jobs().get(&(key.namespace.clone(), key.name.clone())) else {
            return;
        };
        let uid = super::jobs::uid(&*stored);
        let mut memory = self.memory().get(&uid).cloned().unwrap_or_default();
        let begun = Instant::now();
        if let Some(at) = memory.left_alone_until.filter(|at| *at > begun) {
            shared.queue.add_at(key.clone(), at);
            return;
        }
        // One job's bug must not stop the others.
        let end = AssertUnwindSafe(self.steps(shared, &stored, &mut memory))
            .catch_unwind()
            .await;
        let end = end.unwrap_or_else(|_| End::Failed("it panicked".to_owned().into(), None));
        let failed = matches!(end, End::Failed(..));
        shared
            .metrics
            .passed(J::FRAMEWORK.name, waited, begun.elapsed(), failed);
        match end {
            End::Settled(wake) => {
                memory.succeeded();
                if let Some(at) = wake {
                    shared.queue.add_at(key.clone(), at);
                }
            }
            End::Again => {
                memory.succeeded();
                shared.queue.add(key.clone());
            }
            End::Failed(problem, wake) => {
                memory.errors = memory.errors.saturating_add(1);
                memory.left_alone_until = problem.retry_after.map(|wait| Instant::now() + wait);
                let wait = backoff(memory.errors, key).max(problem.retry_after.unwrap_or_default());
                tracing::warn!(
                    kind = self.name(),
                    namespace = key.namespace,
                    job = key.name,
                    problem = problem.text,
                    wait_ms = millis(wait),
                    "a pass failed"
                );
                let again = Instant::now() + wait;
                memory.refused.until(again);
                // Time limits are kept whatever else fails, unless the server is to be left alone.
                shared
                    .queue
                    .add_at(key.clone(), wake.map_or(again, |at| at.min(again)));
            }
        }
        // A job that went meanwhile has been forgotten and stays so.
        let current = self.jobs().get(&(key.namespace.clone(), key.name.clone()));
        if current.is_some_and(|job| super::jobs::uid(&*job) == uid) {
            self.memory().insert(uid, memory);
        }
    }

    async fn steps(&self, shared: &Shared, held: &Arc<Stored<J>>, memory: &mut Memory) -> End {
        let stored = match self.clear(shared, held.clone(), memory).await {
            Ok(Some(stored)) if super::jobs::uid(&*stored) == super::jobs::uid(&**held) => stored,
            // There is none of this name, or another.
            Ok(_) => return End::Again,
            Err(error) => return End::Failed(error.into(), Some(Instant::now() + LONGEST_SLEEP)),
        };
        let stored = &stored;
        let ((namespace, name), uid) = (super::jobs::name(stored), super::jobs::uid(&**stored));
        let old = stored.status();
        let observed = shared.children().observe(&namespace, &uid);
        let mut plan = self.plan(shared, stored, &old, &observed);
        if plan.delete_job {
            return delete_job(shared, stored, memory).await;
        }
        let applier = Applier {
            client: &shared.client,
            timeout: shared.timeout,
            children: &shared.children,
            limit: &shared.limit,
            namespace: &namespace,
            owner: &uid,
            kind: &J::kind(&()),
            name: &name,
            controller: J::FRAMEWORK.controller,
        };
        let refused = memory.refused.hold_back(stored.meta().generation, &mut plan);
        let paced = memory.pace.hold_back(&mut plan);
        let held_back = refused.into_iter().chain(paced).min();
        let acted = plan.changes_children();
        let applied = if acted {
            applier.apply(&plan).await
        } else {
            Applied::default()
        };
        if !(applied.created_pods.is_empty() && applied.created_services.is_empty()) {
            memory.pace.created();
        }
        memory.refused.add(&applied.failures);
        // What is reported is what is true now, own writes included.
        let observed = shared.children().observe(&namespace, &uid);
        let next = if acted {
            self.plan(shared, stored, &old, &observed)
        } else {
            plan
        };
        let written = self.report(shared, stored, &old, &next, memory).await;
        self.tell(shared, stored, &applied, &next, &written, memory).await;
        // What was found to be gone may be missed by now, and no watch tells of it any more. The job's time to live may
        // have ended meanwhile.
        let unfinished = next.delete_job || acted && held_back.is_none() && next.changes_children();
        let wake = next.requeue.map(|requeue| instant(shared, requeue.at));
        let wake = wake.into_iter().chain(held_back).min();
        let mut failures = applied.failures.iter();
        let retry_after = failures.clone().filter_map(|f| f.problem.retry_after()).max();
        match (
            written,
            failures.find(|f| !matches!(f.problem, ApplyError::NotTried)),
        ) {
            // If the job is gone or has changed, the watch tells, or the next pass asks.
            (Err(error), _) => End::Failed(error.into(), wake),
            (_, Some(failure)) => {
                let text = format!("{}: {}", failure.name, failure.problem);
                End::Failed(Problem { text, retry_after }, wake)
            }
            (Ok(Written::Unchanged), _) => {
                let problem = "the server keeps another status than it is sent; is the CRD an older one?";
                End::Failed(problem.to_owned().into(), wake)
            }
            (Ok(Written::Now), _) => End::Again,
            (Ok(_), _) if unfinished => End::Again,
            (Ok(Written::Later(at)), _) => End::Settled(Some(wake.map_or(at, |w| w.min(at)))),
            (Ok(Written::Nothing | Written::Refused), _) => End::Settled(wake),
        }
    }

    fn plan(&self, shared: &Shared, stored: &Stored<J>, old: &JobStatus, observed: &Observed) -> Plan {
        stored.plan(&shared.settings, old, observed, shared.clock.now())
    }

    async fn report(
        &self,
        shared: &Shared,
        stored: &Arc<Stored<J>>,
        old: &JobStatus,
        plan: &Plan,
        memory: &mut Memory,
    ) -> Result<Written, CallError> {
        let Some(change) = &plan.status else {
            memory.counts_since = None;
            return Ok(Written::Nothing);
        };
        if !change.urgent {
            let due = *memory.counts_since.get_or_insert_with(Instant::now) + COLLECT_COUNTS;
            if Instant::now() < due {
                return Ok(Written::Later(due));
            }
        }
        if let Some(due) = memory.writes.due() {
            return Ok(Written::Later(due));
        }
        memory.writes.written();
        let sent = self.jobs().sent();
        let written = report::write_status(&shared.client, shared.timeout, stored, old, &change.status).await;
        let answer = match written {
            // What is wrong with the job is wrong with every write of it, until it is edited.
            Err(error) if plan.refused && error.code() == Some(422) => {
                let (namespace, job) = (&stored.meta().namespace, &stored.meta().name);
                let problem = error.message();
                tracing::warn!(
                    kind = self.name(),
                    namespace,
                    job,
                    problem,
                    "no status can be written"
                );
                return Ok(Written::Refused);
            }
            Err(error) => {
                memory.doubt = Doubt::of(&error, stored);
                return Err(error);
            }
            Ok(answer) => answer,
        };
        let changed = answer.meta().resource_version != stored.meta().resource_version;
        if changed {
            let meta = stored.meta();
            shared.metrics.stored(
                J::FRAMEWORK.name,
                meta.namespace.as_deref().unwrap_or_default(),
                meta.creation_timestamp.as_ref().map(|t| t.0),
                old,
                &change.status,
            );
        }
        if !self.jobs().answered(answer, sent) {
            memory.doubt = Some(Doubt::Untold);
        }
        if !changed {
            return Ok(Written::Unchanged);
        }
        memory.counts_since = None;
        Ok(Written::Now)
    }

    /// The job as the server has it if there is doubt about that, else as it is held. None if it is gone.
    async fn clear(
        &self,
        shared: &Shared,
        mut held: Arc<Stored<J>>,
        memory: &mut Memory,
    ) -> Result<Option<Arc<Stored<J>>>, CallError> {
        let name = super::jobs::name(&held);
        while memory.doubt.as_ref().is_some_and(|doubt| doubt.stands(&held)) {
            let sent = self.jobs().sent();
            let (job, version) = doubt::ask(shared, &name).await?;
            let found = self.jobs().asked(&held, sent, job, version);
            match found {
                Found::Held(job) => {
                    memory.doubt = None;
                    held = job;
                }
                Found::Gone(uid) => {
                    uid.iter().for_each(|uid| self.forget(shared, &name.0, uid));
                    return Ok(None);
                }
                Found::Overtaken => {
                    let Some(now) = self.jobs().get(&name) else {
                        return Ok(None);
                    };
                    held = now;
                }
            }
        }
        memory.doubt = None;
        Ok(Some(held))
    }

    async fn tell(
        &self,
        shared: &Shared,
        stored: &Stored<J>,
        applied: &Applied,
        plan: &Plan,
        written: &Result<Written, CallError>,
        memory: &mut Memory,
    ) {
        let news = memory.news(applied, plan, written.as_ref().ok());
        let now = shared.clock.now();
        let done = events::of_applied(applied);
        let namespace = stored.meta().namespace.clone().unwrap_or_default();
        let failure = plan.status.as_ref().and_then(|s| s.status.failure.as_ref());
        for event in &news {
            let name = stored.meta().name.as_deref().unwrap_or_default();
            let failure = failure.filter(|_| event.warning);
            events::log(&self.name(), &namespace, name, failure, event);
        }
        for (order, event) in (0..).zip(done.iter().chain(&news)) {
            let at = now.checked_add(SignedDuration::from_nanos(order)).unwrap_or(now);
            shared.recorder.send(stored, event, at).await;
        }
    }
}

impl<J: TrainingJob> Kind for KindOf<J> {
    fn name(&self) -> String {
        J::kind(&()).into_owned()
    }

    fn controller(&self) -> &'static str {
        J::FRAMEWORK.controller
    }

    fn watch<'a>(&'a self, shared: &'a Shared, listed: watch::Sender<bool>) -> Boxed<'a> {
        Box::pin(async move {
            shared
                .watch(None, Stored::read, |event| self.take(shared, event, &listed))
                .await;
        })
    }

    fn reconcile<'a>(&'a self, shared: &'a Shared, key: &'a Key, waited: Duration) -> Boxed<'a> {
        Box::pin(self.pass(shared, key, waited))
    }
}

async fn delete_job<J: TrainingJob>(shared: &Shared, stored: &Stored<J>, memory: &mut Memory) -> End {
    let meta = stored.meta();
    let (namespace, name) = (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    );
    let params = apply::only(meta.uid.as_deref(), None);
    let api = Api::<Stored<J>>::namespaced(shared.client.clone(), &namespace);
    match shared.timeout.call(api.delete(&name, &params)).await {
        Ok(_) => {
            shared.metrics.deleted(J::FRAMEWORK.name, &namespace);
            let event = PlannedEvent {
                warning: false,
                reason: "SuccessfulDeleteJob".to_owned(),
                message: format!("Deleted job: {name}"),
            };
            shared.recorder.send(stored, &event, shared.clock.now()).await;
            End::Settled(None)
        }
        Err(error) => {
            memory.doubt = Doubt::of(&error, stored);
            End::Failed(error.into(), None)
        }
    }
}

/// The instant at which the clock will show `at`.
fn instant(shared: &Shared, at: Timestamp) -> Instant {
    let wait = Duration::try_from(at.duration_since(shared.clock.now())).unwrap_or(Duration::ZERO);
    // Plans see whole seconds: a moment too early would find nothing due.
    Instant::now() + (wait + Duration::from_millis(5)).min(LONGEST_SLEEP)
}
