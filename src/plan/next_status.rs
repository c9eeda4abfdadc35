//! The next status of a job: conditions, counts, and the events about them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::labels;
use crate::api::{
    CleanPodPolicy, ConditionStatus, ConditionType, FailureRecord, JobCondition, JobStatus, ReplicaStatus,
};
use crate::job::{Milestone, ReplicaState, Replicas, Role};
use crate::render;

use super::facts::Facts;
use super::failure::FailureCause;
use super::observed::{Phase, PodRecord};
use super::pod_end::end_of;
use super::stall::Output;
use super::survey::{self, Survey};
use super::types::{Plan, PlannedEvent, StatusChange};
use super::verdict::JobVerdict;
use super::{conditions, failure, reasons, restarts, waiting};

/// The next status of a job under construction, and the events about it.
pub(super) struct NextStatus<'a> {
    facts: &'a Facts<'a>,
    pub(super) status: JobStatus,
    /// True if the job waits in the queue of a gang scheduler.
    waits: bool,
    /// True if the status must be stored before any other action.
    pub(super) stored_first: bool,
    /// The number of ready replicas, once they are counted. In the status of a job in a queue, others count as active.
    ready: Option<i32>,
    events: Vec<PlannedEvent>,
    /// The least time between two writes of the progress alone.
    progress_interval: Option<Duration>,
}

impl<'a> NextStatus<'a> {
    /// Returns the next status of an active job.
    pub(super) fn of_active(
        facts: &'a Facts<'a>,
        status: JobStatus,
        survey: &Survey<'_>,
        verdict: &JobVerdict<'_, '_>,
        output: Option<&Output<'_>>,
    ) -> Self {
        let mut next = NextStatus::new(facts, status);
        next.waits = survey.waits;
        next.mark_created();
        next.status.start_time = Some(Time(survey.start));
        restarts::record(&mut next.status, facts, survey, verdict);
        match verdict {
            // The pods of the earlier attempt are outdated now and are not counted.
            JobVerdict::Restarts(_) | JobVerdict::Resizes { .. } => {
                next.count(&survey::states(facts.job, &next.status, facts.observed));
            }
            _ if survey.waits && next.status.replica_statuses.is_empty() => {}
            _ => next.count(&survey.states),
        }
        match verdict {
            JobVerdict::Failed {
                milestone,
                record,
                limit,
            } => next.fail(milestone, (**record).clone(), limit.as_deref()),
            JobVerdict::Succeeded if next.must_show_running() => {}
            JobVerdict::Succeeded => next.succeed(),
            JobVerdict::SucceedsAt(_) => {
                next.must_show_running();
            }
            JobVerdict::FailsAt(_) => {}
            JobVerdict::Restarts(restarts) => {
                if let Some(root_cause) = &restarts.root_cause {
                    next.status.set_failure(Some(root_cause.failure.record.clone()));
                    let role = root_cause.replica.role.name();
                    let why = output.and_then(Output::why);
                    let milestone = match why.filter(|_| root_cause.failure.cause == FailureCause::Stalled) {
                        Some(why) => Milestone::Stalled { why },
                        None => Milestone::Restarting { role },
                    };
                    next.mark_restarting(true, reasons::RESTARTING, &milestone);
                }
            }
            JobVerdict::Resizes { change, .. } => {
                next.mark_restarting(false, reasons::RESIZED, &Milestone::Resized { change });
            }
            JobVerdict::GoesOn { running, is_resized } => {
                // Pods are created for the new numbers once these are stored.
                next.stored_first |= is_resized;
                match running {
                    true => next.mark_running(),
                    false => next.stop_running(&survey.states),
                }
                next.mark_stalled(output);
            }
        }
        next.show_progress(output);
        if !next.status.is_finished() {
            next.count_pending_as_active();
        }
        next
    }

    /// Begins with `status`, which is the stored status with corrections.
    pub(super) fn new(facts: &'a Facts<'a>, status: JobStatus) -> Self {
        Self {
            facts,
            status,
            waits: false,
            stored_first: false,
            ready: None,
            events: Vec::new(),
            progress_interval: None,
        }
    }

    /// Sets a condition. Returns true if the status has changed.
    pub(super) fn set(
        &mut self,
        type_: ConditionType,
        value: ConditionStatus,
        reason: &str,
        milestone: &Milestone<'_>,
    ) -> bool {
        self.set_at(self.facts.now, type_, value, reason, milestone)
    }

    /// Sets a condition with the transition time `at`.
    fn set_at(
        &mut self,
        at: Timestamp,
        type_: ConditionType,
        value: ConditionStatus,
        reason: &str,
        milestone: &Milestone<'_>,
    ) -> bool {
        let job = &self.facts.job.job;
        let reason = format!("{}{reason}", job.kind());
        conditions::set(
            &mut self.status,
            type_,
            value,
            &reason,
            job.message(milestone),
            at,
        )
    }

    /// Adds the event about a milestone. `cause` is the part of its message that the condition does not have.
    pub(super) fn announce(
        &mut self,
        warning: bool,
        reason: &str,
        milestone: &Milestone<'_>,
        cause: Option<&str>,
    ) {
        let job = &self.facts.job.job;
        let message = job.message(milestone);
        self.events.push(PlannedEvent {
            warning,
            reason: format!("{}{reason}", job.kind()),
            message: cause.map_or_else(|| message.clone(), |cause| format!("{message} ({cause})")),
        });
    }

    /// Sets Created, with the creation time of the job.
    pub(super) fn mark_created(&mut self) {
        if self.status.condition(ConditionType::Created).is_none() {
            let created = self.facts.job.job.meta().creation_timestamp.as_ref();
            let created = created.map_or(self.facts.now, |time| time.0);
            let (type_, holds) = (ConditionType::Created, ConditionStatus::True);
            self.set_at(created, type_, holds, reasons::CREATED, &Milestone::Created);
        }
    }

    fn mark_running(&mut self) {
        let (type_, holds) = (ConditionType::Running, ConditionStatus::True);
        self.set(type_, holds, reasons::RUNNING, &Milestone::Running);
    }

    /// Sets Running unless the stored status has it. Returns true if it was set: clients wait for Running, so it must be
    /// stored before the job may succeed.
    fn must_show_running(&mut self) -> bool {
        let must = !self.facts.stored.is(ConditionType::Running);
        if must {
            self.mark_running();
            self.stored_first = true;
        }
        must
    }

    fn count(&mut self, states: &Replicas<'_>) {
        let job = self.facts.job;
        let framework = job.job.framework();
        let counts = states.roles().iter().map(|role| {
            let count = |state| i32::try_from(role.count(state)).unwrap_or(i32::MAX);
            let status = ReplicaStatus {
                active: i32::try_from(role.running()).unwrap_or(i32::MAX),
                succeeded: count(ReplicaState::Succeeded),
                failed: count(ReplicaState::Failed),
                ready: framework
                    .waits_for_readiness()
                    .then(|| count(ReplicaState::Ready)),
                selector: framework.scaled_role.map(|_| render::selector(job, role.role)),
            };
            (role.role.name().to_owned(), status)
        });
        self.status.replica_statuses = counts.collect();
        self.ready = Some(self.counted_ready());
    }

    /// Returns the number of ready replicas by the counts of the status.
    fn counted_ready(&self) -> i32 {
        let of_role = |role: &ReplicaStatus| role.ready.unwrap_or(role.active);
        let counts = self.status.replica_statuses.values().map(of_role);
        counts.fold(0, i32::saturating_add)
    }

    /// For a job in a queue, counts all replicas that have not ended as active, also before their pods are created. The
    /// queue reclaims capacity by suspending a job. If no replica is active, it gives the capacity to another job
    /// immediately, before this operator has observed the suspension.
    pub(super) fn count_pending_as_active(&mut self) {
        let (job, stored) = (self.facts.job, self.facts.stored);
        if labels::queue(job.job.meta()).is_none() {
            return;
        }
        for role in &job.topology.roles {
            let counts = &mut self.status.replica_statuses;
            let count = counts.entry(role.name().to_owned()).or_default();
            let replicas = i32::try_from(role.replicas).unwrap_or(i32::MAX);
            let ended = count.succeeded.saturating_add(count.failed);
            count.active = replicas.saturating_sub(ended).max(0);
        }
        let is_active = |status: &JobStatus| status.replica_statuses.values().any(|role| role.active > 0);
        self.stored_first |= is_active(&self.status) && !is_active(stored);
    }

    fn succeed(&mut self) {
        let (type_, holds) = (ConditionType::Succeeded, ConditionStatus::True);
        self.set(type_, holds, reasons::SUCCEEDED, &Milestone::Succeeded);
        self.announce(false, reasons::SUCCEEDED, &Milestone::Succeeded, None);
        self.status.set_failure(None);
        self.mark_ended();
    }

    /// Fails the job. `limit` describes the limit of restarts that the failure exceeded, if any.
    fn fail(&mut self, milestone: &Milestone<'_>, record: FailureRecord, limit: Option<&str>) {
        let of_container = record.exit_code.map(|_| failure::describe(&record));
        let record = match limit {
            Some(limit) => failure::out_of_restarts(limit, record),
            None => record,
        };
        let cause = of_container.unwrap_or_else(|| failure::describe(&record));
        self.status.set_failure(Some(record));
        let (type_, holds) = (ConditionType::Failed, ConditionStatus::True);
        self.set(type_, holds, reasons::FAILED, milestone);
        self.announce(true, reasons::FAILED, milestone, Some(&cause));
        self.mark_ended();
    }

    fn mark_restarting(&mut self, warning: bool, reason: &str, milestone: &Milestone<'_>) {
        let (type_, holds) = (ConditionType::Restarting, ConditionStatus::True);
        self.set(type_, holds, reason, milestone);
        self.announce(warning, reason, milestone, None);
    }

    /// Sets Running to False if no replica runs any more: all have lost their pods or nodes, and no restart is due.
    fn stop_running(&mut self, states: &Replicas<'_>) {
        let mut roles = states.roles().iter();
        if self.status.is(ConditionType::Running) && !roles.any(|role| role.running() > 0) {
            let (type_, ends) = (ConditionType::Running, ConditionStatus::False);
            self.set(type_, ends, reasons::NOT_RUNNING, &Milestone::Interrupted);
        }
    }

    /// Sets or removes Stalled. It stays until the job makes progress, also if another operator takes over meanwhile.
    fn mark_stalled(&mut self, output: Option<&Output<'_>>) {
        let stored = self.facts.stored;
        if let Some(why) = output.and_then(Output::why) {
            let (type_, holds) = (ConditionType::Stalled, ConditionStatus::True);
            let milestone = Milestone::Stalled { why };
            if self.set(type_, holds, reasons::STALLED, &milestone) {
                self.announce(true, reasons::STALLED, &milestone, None);
            }
        } else if stored.is(ConditionType::Stalled) && output.is_none_or(|o| o.has_advanced_since(stored)) {
            conditions::remove(&mut self.status, ConditionType::Stalled);
            if output.is_some() {
                self.announce(false, reasons::ADVANCING, &Milestone::Advancing, None);
            }
        }
    }

    fn show_progress(&mut self, output: Option<&Output<'_>>) {
        match output {
            Some(output) => {
                self.progress_interval = Some(output.write_interval());
                if let Some(progress) = output.status(self.facts.stored.progress.as_ref()) {
                    self.status.progress = Some(progress);
                }
            }
            None => self.status.progress = None,
        }
    }

    fn mark_ended(&mut self) {
        self.status.completion_time = Some(Time(self.facts.now));
        self.settle_counts();
    }

    /// Counts the pods that have not ended as active. A queue gives their capacity to another job once no replica is active.
    pub(super) fn count_what_is_left(&mut self) {
        let counts = &mut self.status.replica_statuses;
        for count in counts.values_mut() {
            *count = ReplicaStatus {
                selector: count.selector.take(),
                ..ReplicaStatus::default()
            };
        }
        let roles = &self.facts.job.topology.roles;
        let pods = self.facts.observed.pods.values();
        for pod in pods.filter(|pod| !pod.is_terminal()) {
            // Pods of a role that was removed from the spec count, too.
            let role = roles.iter().find(|role| role.may_have(&pod.name));
            if let Some(role) = role.or(roles.first()) {
                counts.entry(role.name().to_owned()).or_default().active += 1;
            }
        }
    }

    /// Sets the final counts. Replicas whose pods are about to be deleted are not active. In a job that has succeeded,
    /// replicas that still run count as succeeded under any clean-up policy. The Go operator counts in the same way
    /// (`pkg/controller.v1/common/job.go` of v1.8.1), and clients wait until all replicas of a role have succeeded.
    pub(super) fn settle_counts(&mut self) {
        let (job, observed) = (self.facts.job, self.facts.observed);
        let succeeded = self.status.is(ConditionType::Succeeded);
        let stop_running = self.must_stop_running();
        let roles = &job.topology.roles;
        for (name, count) in &mut self.status.replica_statuses {
            let role = roles.iter().find(|role| role.name() == name.as_str());
            let replicas = role.map_or(0, |role| i32::try_from(role.replicas).unwrap_or(i32::MAX));
            if succeeded && count.active > 0 {
                let most = replicas.saturating_sub(count.failed).max(count.succeeded);
                count.succeeded = count.succeeded.saturating_add(count.active).min(most);
            }
            if succeeded || stop_running {
                count.active = 0;
                continue;
            }
            // A replica is active while its pod may run and its framework container has not ended.
            let runs = |pod: &&Arc<PodRecord>| {
                let is_of_role = |role: &&Role<'_>| role.may_have(&pod.name);
                let goes_on = |role: &Role<'_>| end_of(pod, role).is_none();
                let may_run = pod.phase == Phase::Running && !pod.deleting;
                may_run && role.filter(is_of_role).is_some_and(goes_on)
            };
            let running = observed.pods.values().filter(runs).count();
            // A pod in which a container was restarted runs, and its replica may be counted as failed.
            let ended = count.succeeded.saturating_add(count.failed);
            let most = replicas.saturating_sub(ended).max(0);
            count.active = i32::try_from(running).unwrap_or(i32::MAX).min(most);
        }
    }

    /// Returns true if running pods must be deleted: by the clean-up policy, or because the job exceeded a limit.
    pub(super) fn must_stop_running(&self) -> bool {
        let failure = self.status.failure.as_ref();
        let limit = failure.is_some_and(|f| match f.reason.as_str() {
            // A pod can fail for its own deadline with the same reason. The record of the job's deadline names no pod.
            reasons::DEADLINE_EXCEEDED => f.pod.is_none(),
            reason => [reasons::BACKOFF_LIMIT_EXCEEDED, reasons::STALLED].contains(&reason),
        });
        self.facts.job.policy.clean_pods != CleanPodPolicy::None
            || (limit && self.status.is(ConditionType::Failed))
    }

    /// Returns the plan with this status, if it differs from the stored one, and these actions.
    pub(super) fn with(mut self, actions: Plan) -> Plan {
        let (job, observed, stored, now) = (
            self.facts.job,
            self.facts.observed,
            self.facts.stored,
            self.facts.now,
        );
        let is_active = !self.status.is_finished() && !job.policy.suspend;
        let ready = match self.ready.filter(|_| is_active) {
            Some(ready) => ready,
            None => self.counted_ready(),
        };
        let runs = self.ready.unwrap_or(0) > 0;
        let notices = actions.notices.iter().filter(|_| !runs);
        let lacks_children = observed.pods.is_empty() || actions.creates() > 0;
        let reason = waiting::reason(notices, &stored.waiting_reason, lacks_children);
        let reason = match is_active {
            true if self.status.is(ConditionType::Stalled) => reasons::STALLED.to_owned(),
            true => reason,
            false => String::new(),
        };
        self.status.set_waiting(reason, now);
        let mut change = None;
        if self.status != *stored {
            let only_progress = || {
                let progress = stored.progress.clone();
                let without = JobStatus {
                    progress,
                    ..self.status.clone()
                };
                without == *stored
            };
            let at_most_every = self.progress_interval.filter(|_| only_progress());
            self.status.ready = format!("{ready}/{}", job.topology.total());
            let news = self.status.with_counts_of(stored);
            let urgent =
                self.stored_first || news != *stored && (self.waits || !self.is_partial_start(&news));
            change = Some(StatusChange {
                status: self.status,
                urgent,
                at_most_every,
            });
        }
        Plan {
            status: change,
            events: self.events,
            ..actions
        }
    }

    /// Returns true if `next`, the next status without new counts, only adds that the job was created or begins to run, and
    /// some replicas have not started. Most jobs run completely a moment later, so that one write is enough for both.
    fn is_partial_start(&self, next: &JobStatus) -> bool {
        let stored = self.facts.stored;
        let begun = |role: &ReplicaStatus| i64::from(role.active) + i64::from(role.succeeded);
        let begun: i64 = self.status.replica_statuses.values().map(begun).sum();
        if begun >= i64::from(self.facts.job.topology.total()) {
            return false;
        }
        let beginning = [ConditionType::Created, ConditionType::Running];
        let begins = |c: &JobCondition| beginning.iter().any(|type_| c.type_ == type_.as_str());
        if *stored == JobStatus::default() {
            return next.conditions.iter().all(begins);
        }
        let runs = next.is(ConditionType::Running) && !stored.is(ConditionType::Running);
        runs && JobStatus {
            conditions: stored.conditions.clone(),
            ..next.clone()
        } == *stored
    }
}
