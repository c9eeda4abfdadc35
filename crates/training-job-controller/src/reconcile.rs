//! Reconciling one job: observe, validate, plan, apply, report.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Api;
use kube_follow::millis;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use training_job::api::{ConditionType, JobStatus};
use training_job::job::HookPanic;
use training_job::plan::observed::{NameHolder, Observed, Phase, PodRecord};
use training_job::plan::{self, ChildKind, Deletion, Plan};

use super::apply::Applier;
use super::cache::jobs;
use super::cache::stored_job::StoredJob;
use super::context::Context;
use super::job_state::JobState;
use super::metrics::ErrorReason;
use super::queue::Key;
use super::quota_queue::Part;
use super::rate_limit::RefusedChildren;
use super::reconciler::{FirstList, JobReconciler};
use super::requeue::{self, MAX_SLEEP, Next, Problem};
use super::steps::{Action, Applied};
use super::validate::Validated;

/// Time until a finished job is offered again after too many were waiting.
const OFFER_AGAIN: Duration = Duration::from_secs(5);

/// The data that the steps of one reconcile share.
pub(super) struct Reconcile<'a> {
    pub(super) reconciler: &'a JobReconciler,
    pub(super) context: &'a Context,
    pub(super) job: &'a StoredJob,
    /// The status of the cached job, without its invalid values.
    pub(super) stored_status: JobStatus,
    pub(super) validated: Validated<'a>,
    pub(super) state: &'a mut JobState,
}

impl JobReconciler {
    /// Watches the jobs forever, and records the state of the first list.
    pub(super) async fn watch(&self, context: &Context, listed: watch::Sender<FirstList>) {
        let handle = |event| self.on_job_event(context, event, &listed);
        let (client, resource) = (context.client.clone(), &self.kind.resource);
        let api = match &context.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        };
        context.watch(api, resource, None, handle).await;
    }

    /// Reconciles one job, and queues it again if another reconcile is due. `waited` is the time that it spent in the
    /// queue.
    pub(super) async fn reconcile(&self, context: &Context, key: &Key, waited: Duration) {
        let name = (key.namespace.clone(), key.name.clone());
        let Some(cached) = self.jobs().get(&name) else {
            context.freed_capacity.set_waiting(key, false);
            let recorded = context.quota_queue.record(key, None, Part::Nothing, false);
            recorded.next.into_iter().for_each(|next| context.queue.add(next));
            return;
        };
        let span = tracing::info_span!(
            "reconcile",
            kind = self.kind.name(),
            namespace = key.namespace,
            job = key.name,
            generation = cached.meta().generation,
            duration_ms = Empty,
        );
        self.reconcile_job(context, key, &cached, waited)
            .instrument(span)
            .await;
    }

    /// Reconciles a cached job. All its log lines are in the current span.
    async fn reconcile_job(&self, context: &Context, key: &Key, cached: &Arc<StoredJob>, waited: Duration) {
        let uid = jobs::uid(cached.meta());
        let mut state = self.states().get(&uid).cloned().unwrap_or_default();
        let started = Instant::now();
        if let Some(at) = state.blocked_until.filter(|at| *at > started) {
            context.queue.add_at(key.clone(), at);
            return;
        }
        // One job's bug must not stop the others.
        let steps = AssertUnwindSafe(self.five_steps(context, key, cached, &mut state)).catch_unwind();
        let next = match steps.await {
            Ok(next) => next,
            Err(payload) => {
                let panic = HookPanic::caught(&*payload);
                self.on_panic(context, cached, &mut state, panic).await
            }
        };
        let failed = match &next {
            Next::Failed(problem, _) if !problem.is_away => {
                let reason = problem.reason;
                context.metrics.reconcile_failed(self.kind.framework.name, reason);
                true
            }
            Next::Failed(..) | Next::Done(_) | Next::Now => false,
        };
        let duration = started.elapsed();
        Span::current().record("duration_ms", millis(duration));
        context
            .metrics
            .reconciled(self.kind.framework.name, waited, duration, failed);
        tracing::debug!(failed, "reconciled");
        requeue::schedule(context, self.kind.name(), key, next, &mut state);
        // The state of a job that was deleted meanwhile has been removed and must not return.
        let current = self.jobs().get(&jobs::name(cached.meta()));
        if current.is_some_and(|job| jobs::uid(job.meta()) == uid) {
            self.states().insert(uid, state);
        }
    }

    /// Reports that a hook panicked.
    async fn on_panic(
        &self,
        context: &Context,
        job: &StoredJob,
        state: &mut JobState,
        panic: HookPanic,
    ) -> Next {
        let HookPanic { hook, message } = panic;
        let problem = format!("the hook {} panicked: {message}", hook.unwrap_or("(none)"));
        let report = async {
            let (kind, name) = (self.kind.name(), job.meta().name.as_deref().unwrap_or_default());
            let mut reconcile = Reconcile {
                reconciler: self,
                context,
                job,
                stored_status: job.status(),
                validated: Validated::LeftAlone { news: false },
                state,
            };
            let now = context.clock.now();
            let plan = plan::panicked(kind, name, &reconcile.stored_status, hook, &message, now);
            let written = reconcile.write_status(&plan).await;
            reconcile.send_events(&Applied::default(), &plan, &written);
        };
        // The hooks that encode a status may panic as well. The log has the problem in any case.
        let _ = AssertUnwindSafe(report).catch_unwind().await;
        Next::Failed(Problem::new(ErrorReason::Panic, problem), None)
    }

    async fn five_steps(
        &self,
        context: &Context,
        key: &Key,
        cached: &Arc<StoredJob>,
        state: &mut JobState,
    ) -> Next {
        // Observe.
        let observation = match self.observe(context, cached, state).await {
            Ok(Some(observation)) => observation,
            Ok(None) => return Next::Now,
            Err(error) => return Next::Failed(error.into(), Some(Instant::now() + MAX_SLEEP)),
        };
        let job = &*observation.job;

        // Validate.
        let mut reconcile = Reconcile {
            reconciler: self,
            context,
            job,
            stored_status: job.status(),
            validated: Validated::of(job, &context.settings),
            state,
        };

        let is_offered = !reconcile.stored_status.is_finished()
            || context.offer_finished(job, &reconcile.stored_status, &observation.children);

        // Plan.
        let mut plan = reconcile.plan(&observation.children);
        let mut read = BTreeMap::new();
        if !plan.unread.is_empty() {
            let reader = Applier::new(context, job, None, false);
            read = match reader.read_pods(&plan.unread).await {
                Ok(read) => read,
                Err(error) => return Next::Failed(error.into(), Some(Instant::now() + MAX_SLEEP)),
            };
            plan = reconcile.plan_with(&read);
        }
        context.freed_capacity.set_waiting(key, plan.waits_for_capacity);
        reconcile.record_wait(&observation.children);
        if plan.delete_job {
            return reconcile.delete_job().await;
        }
        if context.quota_queue.is_in_turn(key) {
            reconcile.state.refused = RefusedChildren::default();
        } else if !plan.create_pods.is_empty() && observation.children.counted(ChildKind::Pod).is_empty() {
            let scope = (key.namespace.clone(), ChildKind::Pod);
            if context.quota_queue.must_queue(key, &scope) {
                reconcile.state.queue_up(job.meta().generation, &plan, scope);
            }
        }
        let deferred = reconcile.state.defer_creates(job.meta().generation, &mut plan);

        // Apply.
        let acted = plan.changes_children();
        let mut applied = if acted {
            let was_refused = reconcile.state.refusal.is_some();
            let applier = Applier::new(context, job, reconcile.validated.topology(), was_refused);
            applier.apply(&plan, &reconcile.validated).await
        } else {
            Applied::default()
        };
        applied.acted = acted;
        applied.deferred = deferred;
        reconcile.state.record(&applied, &key.namespace);
        let since = reconcile.stored_status.waiting_since.as_ref();
        let since = since.map_or_else(|| context.clock.now(), |time| time.0);
        let refused = reconcile.state.quota.clone().map(|scope| (scope, since));
        let kind = refused.as_ref().map(|((_, kind), _)| *kind);
        let part = kind.map_or(Part::Nothing, |kind| reconcile.part(&observation.children, kind));
        let recorded = context
            .quota_queue
            .record(key, refused, part, applied.has(Action::Create));
        if let Some(kind) = kind.filter(|_| recorded.gives_back) {
            reconcile.give_back(kind, &mut applied).await;
        }
        recorded.next.into_iter().for_each(|next| context.queue.add(next));

        // Report the current state, which includes our own writes.
        let mut next_plan = if acted { reconcile.plan_with(&read) } else { plan };
        let is_unread = !next_plan.unread.is_empty();
        if is_unread {
            next_plan = Plan::default();
        }
        if let Some(reason) = reconcile.state.refusal.clone() {
            next_plan.report_refusal(&reconcile.stored_status, &reason, context.clock.now());
        }
        let written = reconcile.write_status(&next_plan).await;
        reconcile.send_events(&applied, &next_plan, &written);
        match requeue::decide(context, &applied, &next_plan, written) {
            Next::Done(_) if is_unread => Next::Now,
            Next::Done(due) if !is_offered => {
                let again = Instant::now() + OFFER_AGAIN;
                Next::Done(Some(due.map_or(again, |due| due.min(again))))
            }
            next => next,
        }
    }
}

impl Reconcile<'_> {
    /// Records the time since which an active job has no pods. It is that of its start, or now if its pods are gone.
    fn record_wait(&mut self, children: &Observed) {
        let status = &self.stored_status;
        let is_active = !status.is_finished() && !status.is(ConditionType::Suspended);
        if !is_active || !children.pods.is_empty() {
            self.state.without_pods = None;
        } else if self.state.without_pods.is_none() {
            let had_pods = status.restart_count > 0 || status.condition(ConditionType::Running).is_some();
            let created = self.job.meta().creation_timestamp.as_ref();
            let started = status.start_time.as_ref().or(created).filter(|_| !had_pods);
            let since = started.map_or_else(|| self.context.clock.now(), |time| time.0);
            self.state.without_pods = Some(Arc::new(self.context.metrics.wait_for_pods(since)));
        }
    }

    /// Returns what the job holds of a kind of children. `before` are those that it had before apply.
    fn part(&self, before: &Observed, kind: ChildKind) -> Part {
        let now = self.context.observe(self.job);
        let has_started = |pod: &Arc<PodRecord>| pod.phase != Phase::Pending;
        let may_work = kind == ChildKind::Pod && now.pods.values().any(has_started);
        if now.counted(kind).is_empty() {
            Part::Nothing
        } else if may_work || !before.counted(kind).is_empty() {
            Part::Kept
        } else {
            Part::New
        }
    }

    /// Deletes the children of a kind, which this reconcile has created. They are created again with those that are refused.
    async fn give_back(&mut self, kind: ChildKind, applied: &mut Applied) {
        let children = self.context.observe(self.job);
        let made = children.counted(kind);
        let delete = made.iter().map(|(name, uid)| Deletion {
            kind,
            name: (*name).to_owned(),
            uid: (*uid).to_owned(),
            force: false,
        });
        let plan = Plan {
            delete: delete.collect(),
            ..Plan::default()
        };
        let applier = Applier::new(self.context, self.job, self.validated.topology(), false);
        let deleted = applier.apply(&plan, &self.validated).await;
        applied.done.extend(deleted.done);
        applied.failures.extend(deleted.failures);
        applied.gave_back = true;
        let names = made.into_iter().map(|(name, _)| name.to_owned());
        let generation = self.job.meta().generation;
        self.state.refused.hold(generation, kind, names, Instant::now());
    }

    /// Plans from the current children, and from the holders of the names that have been read.
    fn plan_with(&self, read: &BTreeMap<String, NameHolder>) -> Plan {
        let mut children = self.context.observe(self.job);
        if !read.is_empty() {
            Arc::make_mut(&mut children).read.clone_from(read);
        }
        self.plan(&children)
    }

    fn plan(&self, children: &Observed) -> Plan {
        let now = self.context.clock.now();
        self.validated.plan(self.job, &self.stored_status, children, now)
    }
}
