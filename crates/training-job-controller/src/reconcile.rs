//! Reconciling one job: observe, validate, plan, apply, report.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube_follow::millis;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use training_job::job::HookPanic;
use training_job::plan::observed::{Observed, Phase, PodRecord};
use training_job::plan::{self, ChildKind, Deletion, Plan};

use super::apply::Applier;
use super::cache::jobs;
use super::cache::stored_job::StoredJob;
use super::context::Context;
use super::job_state::JobState;
use super::metrics::ErrorReason;
use super::observe::observe;
use super::queue::Key;
use super::quota_queue::Part;
use super::rate_limit::RefusedChildren;
use super::reconciler::{JobReconciler, Reconcile};
use super::report::{send_events, write_status};
use super::requeue::{self, MAX_SLEEP, Next, Problem};
use super::steps::{Action, Applied};
use super::ttl::delete_job;
use super::validate::Validated;

/// Time until a finished job is offered again after too many were waiting.
const OFFER_AGAIN: Duration = Duration::from_secs(5);

/// Reconciles one job, and queues it again if another reconcile is due. `waited` is the time that it spent in the
/// queue.
pub(super) async fn reconcile(reconciler: &JobReconciler, context: &Context, key: &Key, waited: Duration) {
    let name = (key.namespace.clone(), key.name.clone());
    let Some(cached) = reconciler.jobs().get(&name) else {
        context.freed_capacity.set_waiting(key, false);
        let recorded = context.quota_queue.record(key, None, Part::Nothing, false);
        recorded.next.into_iter().for_each(|next| context.queue.add(next));
        return;
    };
    let span = tracing::info_span!(
        "reconcile",
        kind = reconciler.kind.name(),
        namespace = key.namespace,
        job = key.name,
        generation = cached.meta().generation,
        duration_ms = Empty,
    );
    reconcile_job(reconciler, context, key, &cached, waited)
        .instrument(span)
        .await;
}

/// Reconciles a cached job. All its log lines are in the current span.
async fn reconcile_job(
    reconciler: &JobReconciler,
    context: &Context,
    key: &Key,
    cached: &Arc<StoredJob>,
    waited: Duration,
) {
    let uid = jobs::uid(cached.meta());
    let mut state = reconciler.states().get(&uid).cloned().unwrap_or_default();
    let started = Instant::now();
    if let Some(at) = state.blocked_until.filter(|at| *at > started) {
        context.queue.add_at(key.clone(), at);
        return;
    }
    // One job's bug must not stop the others.
    let steps = AssertUnwindSafe(five_steps(reconciler, context, key, cached, &mut state)).catch_unwind();
    let next = match steps.await {
        Ok(next) => next,
        Err(payload) => {
            let panic = HookPanic::caught(&*payload);
            on_panic(reconciler, context, cached, &mut state, panic).await
        }
    };
    let failed = match &next {
        Next::Failed(problem, _) if !problem.is_away => {
            let reason = problem.reason;
            context
                .metrics
                .reconcile_failed(reconciler.kind.framework.name, reason);
            true
        }
        Next::Failed(..) | Next::Done(_) | Next::Now => false,
    };
    let duration = started.elapsed();
    Span::current().record("duration_ms", millis(duration));
    context
        .metrics
        .reconciled(reconciler.kind.framework.name, waited, duration, failed);
    tracing::debug!(failed, "reconciled");
    requeue::schedule(context, reconciler.kind.name(), key, next, &mut state);
    // The state of a job that was deleted meanwhile has been removed and must not return.
    let current = reconciler.jobs().get(&jobs::name(cached.meta()));
    if current.is_some_and(|job| jobs::uid(job.meta()) == uid) {
        reconciler.states().insert(uid, state);
    }
}

/// Reports that a hook panicked.
async fn on_panic(
    reconciler: &JobReconciler,
    context: &Context,
    job: &StoredJob,
    state: &mut JobState,
    panic: HookPanic,
) -> Next {
    let HookPanic { hook, message } = panic;
    let problem = format!("the hook {} panicked: {message}", hook.unwrap_or("(none)"));
    let report = async {
        let (kind, name) = (reconciler.kind.name(), job.meta().name.as_deref());
        let mut reconcile = Reconcile {
            reconciler,
            context,
            job,
            stored_status: job.status(),
            validated: Validated::LeftAlone { news: false },
            state,
        };
        let (name, status, now) = (
            name.unwrap_or_default(),
            &reconcile.stored_status,
            context.clock.now(),
        );
        let plan = plan::panicked(kind, name, status, hook, &message, now);
        let written = write_status(&mut reconcile, &plan).await;
        send_events(&mut reconcile, &Applied::default(), &plan, &written);
    };
    // The hooks that encode a status may panic as well. The log has the problem in any case.
    let _ = AssertUnwindSafe(report).catch_unwind().await;
    Next::Failed(Problem::new(ErrorReason::Panic, problem), None)
}

async fn five_steps(
    reconciler: &JobReconciler,
    context: &Context,
    key: &Key,
    cached: &Arc<StoredJob>,
    state: &mut JobState,
) -> Next {
    // Observe.
    let observation = match observe(reconciler, context, cached, state).await {
        Ok(Some(observation)) => observation,
        Ok(None) => return Next::Now,
        Err(error) => return Next::Failed(error.into(), Some(Instant::now() + MAX_SLEEP)),
    };
    let job = &*observation.job;

    // Validate.
    let mut reconcile = Reconcile {
        reconciler,
        context,
        job,
        stored_status: job.status(),
        validated: Validated::of(job, &context.settings).reading(&observation.children),
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
        return delete_job(reconcile).await;
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
    let children = refused.as_ref().map(|((_, kind), _)| *kind);
    let part = children.map_or(Part::Nothing, |kind| {
        part(context, job, &observation.children, kind)
    });
    let recorded = context
        .quota_queue
        .record(key, refused, part, applied.has(Action::Create));
    if let Some(children) = children.filter(|_| recorded.gives_back) {
        give_back(&mut reconcile, children, &mut applied).await;
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
    if !is_unread {
        context.output.watch(key, job.meta(), next_plan.output.take());
    }
    let written = write_status(&mut reconcile, &next_plan).await;
    send_events(&mut reconcile, &applied, &next_plan, &written);
    match requeue::decide(context, &applied, &next_plan, written) {
        Next::Done(_) if is_unread => Next::Now,
        Next::Done(due) if !is_offered => {
            let again = Instant::now() + OFFER_AGAIN;
            Next::Done(Some(due.map_or(again, |due| due.min(again))))
        }
        next => next,
    }
}

/// Returns what the job holds of a kind of children. `before` are those that it had before apply.
fn part(context: &Context, job: &StoredJob, before: &Observed, kind: ChildKind) -> Part {
    let now = context.observe(job);
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
async fn give_back(reconcile: &mut Reconcile<'_>, kind: ChildKind, applied: &mut Applied) {
    let children = reconcile.context.observe(reconcile.job);
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
    let applier = Applier::new(
        reconcile.context,
        reconcile.job,
        reconcile.validated.topology(),
        false,
    );
    let deleted = applier.apply(&plan, &reconcile.validated).await;
    applied.done.extend(deleted.done);
    applied.failures.extend(deleted.failures);
    applied.gave_back = true;
    let names = made.into_iter().map(|(name, _)| name.to_owned());
    let generation = reconcile.job.meta().generation;
    reconcile
        .state
        .refused
        .hold(generation, kind, names, Instant::now());
}
