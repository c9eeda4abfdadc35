//! The invariants that are checked at each change.

use std::collections::BTreeSet;

use kube_memory::{Action, Object};
use serde_json::Value;

use super::timeline::{JobTimeline, JobVersion};
use super::{Check, CheckedChange, gangs, policies, queue};
use crate::call::CurrentCall;
use crate::job::{self, Json};
use crate::kubelet;

/// All invariants about changes, with their numbers in docs/reliability.md.
pub(crate) const ALL: &[(&str, Check)] = &[
    ("I1", unique_rank),
    ("I2", no_excess),
    ("I3", final_is_final),
    ("I3", nothing_after_the_end),
    ("I4", no_success_run_again),
    ("I5", nothing_after_deletion),
    ("I6", foreign_untouched),
    ("I9", no_churn),
    ("I10", honest_counters),
    ("I10", honest_conditions),
    ("I10", honest_successes),
    ("I11", justified_deletion),
    ("I13", environment_is_there),
    ("I19", others_started_first),
    ("I20", policies::are_kept),
    ("I21", queue::is_obeyed),
    ("I22", gangs::is_obeyed),
];

impl CheckedChange<'_> {
    pub(super) fn object(&self) -> &Object {
        self.change.object()
    }

    /// The object as it was before the change, or as it is if it is new.
    pub(super) fn before(&self) -> &Object {
        self.change.previous().unwrap_or(self.change.object())
    }

    pub(super) fn is_job(&self) -> bool {
        job::PLURALS.contains(&self.change.plural())
    }

    /// Whether an operator's call created a child.
    pub(super) fn creates(&self) -> bool {
        self.change.action() == Action::Added && self.acts_on_child()
    }

    /// Whether an operator's call named this child, and not its owner.
    pub(super) fn acts_on_child(&self) -> bool {
        let plural = self.change.plural();
        let verb = match self.change.action() {
            Action::Added => "create",
            // A deletion during another call is the garbage collector's.
            Action::Modified | Action::Deleted => "delete",
        };
        let is_it = |current: &CurrentCall| current.call.is(verb, plural);
        job::CHILDREN.contains(&plural) && self.call.is_some_and(is_it)
    }

    /// The earliest time of a state that the operator may act on, if that may be so many milliseconds old.
    pub(super) fn earliest(&self, staleness: u64) -> u64 {
        self.call
            .map_or(self.now, |current| current.sent)
            .saturating_sub(staleness)
    }

    /// Whether somebody edited the status of this job since the earliest state that the operator may act on.
    fn status_was_edited(&self, life: &JobTimeline) -> bool {
        life.status_edited
            .is_some_and(|at| at >= self.earliest(self.staleness.of_others))
    }

    /// The job that controls the object.
    pub(super) fn owner(&self) -> Option<&JobTimeline> {
        self.timeline.jobs.get(job::controller(self.before())?)
    }

    /// The job that controls the object, or did at `since` or later.
    fn former_owner(&self, since: u64) -> Option<&JobTimeline> {
        let child = self.timeline.children.get(self.before().meta("uid")?.as_str()?)?;
        let recently = child.orphaned.is_none_or(|at| at >= since);
        self.timeline.jobs.get(child.owner.as_ref().filter(|_| recently)?)
    }

    pub(super) fn violation(&self, what: &str) -> Option<String> {
        Some(format!("{} {}: {what}", self.change.kind(), self.change.name()))
    }
}

/// I1: a replica has at most one pod that has neither ended nor is being deleted.
fn unique_rank(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let mine = m.object();
    let uid = job::controller(mine);
    let label =
        |pod: &Object, name: &str| Json::meta(pod, "labels")[name] == Json::meta(mine, "labels")[name];
    let mut others = m.timeline.children_of(uid).filter_map(|(other, life)| {
        let there = life.plural == "pods" && life.deleted.is_none();
        there.then(|| m.view.by_uid(other)).flatten()
    });
    let other = others.find(|other| {
        let other = &**other;
        job::controller(other) == uid
            && !job::has_ended(other)
            && !job::is_deleting(other)
            && label(other, "training.kubeflow.org/replica-type")
            && label(other, "training.kubeflow.org/replica-index")
            && other.meta("namespace") == mine.meta("namespace")
    })?;
    m.violation(&format!(
        "a second pod of this rank, beside {}",
        Json::meta(&*other, "name")
    ))
}

/// I2: a child is created only if a spec asks for it that the operator may still see.
fn no_excess(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let life = m.owner()?;
    let mut versions = life.versions_since(m.earliest(m.staleness.of_others)).iter();
    if versions.any(|version| version.asks_for(m.change.plural(), m.change.name())) {
        return None;
    }
    m.violation("no version of the spec asks for it")
}

/// I3: a finished job stays finished, and keeps its completion time. A job that failed for its invalid spec may run
/// again.
fn final_is_final(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified {
        return None;
    }
    // Users may edit a status, and the operator believes it.
    m.call?;
    let (before, after) = (m.before(), m.object());
    let end = job::end(before)?;
    if job::was_found_invalid(before) {
        return None;
    }
    if job::end(after) != Some(end) {
        return m.violation(&format!("{end} was taken back"));
    }
    let time = |job: &Object| job["status"]["completionTime"].clone();
    (!time(before).is_null() && time(before) != time(after))
        .then(|| m.violation("its completion time changed"))
        .flatten()
}

/// I3: nothing is created for a finished job.
fn nothing_after_the_end(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let ended = |version: &Object| job::end(version).is_some() && !job::was_found_invalid(version);
    let life = m.owner()?;
    if life
        .objects_since(m.earliest(m.staleness.of_own))
        .any(|v| !ended(v))
        || m.status_was_edited(life)
    {
        return None;
    }
    m.violation("created after its job finished")
}

/// I4: no replica runs again that has succeeded by the status.
fn no_success_run_again(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let uid = job::controller(m.object())?;
    let attempt = kubelet::attempt(m.object());
    let succeeded = m.timeline.children_of(Some(uid)).any(|(_, pod)| {
        pod.plural == "pods"
            && pod.owner.as_deref() == Some(uid)
            && pod.name == m.change.name()
            && pod.attempt == attempt
            && pod.succeeded.is_some()
    });
    let life = m.owner()?;
    let known = life
        .objects_since(m.earliest(m.staleness.of_own.max(1)))
        .all(|version| job::is_complete(version, m.change.name()));
    (succeeded && known && !m.status_was_edited(life))
        .then(|| m.violation("it has succeeded, and runs again"))
        .flatten()
}

/// I5: nothing is created for a job that was deleted or is being deleted.
fn nothing_after_deletion(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let Some(uid) = job::controller(m.object()) else {
        return m.violation("created without an owner");
    };
    let Some(life) = m.timeline.jobs.get(uid) else {
        return m.violation("created for a job that never existed");
    };
    let since = m.earliest(m.staleness.of_others);
    if life.deleted.is_some_and(|gone| gone < since) || life.objects_since(since).all(job::is_deleting) {
        return m.violation("created for a job that was deleted");
    }
    None
}

/// I6: operators write only the children that a job controls, the statuses of jobs, and events, and delete only jobs and
/// their children.
fn foreign_untouched(m: &CheckedChange<'_>) -> Option<String> {
    let current = m.call?;
    if m.change.plural() == "resourcequotas" {
        // The API server counts a call's object in the quota.
        return None;
    }
    let call = &current.call;
    match call.resource.as_str() {
        "events" if call.verb == "create" => None,
        resource if job::PLURALS.contains(&resource) && call.verb == "delete" => None,
        child if job::CHILDREN.contains(&child) && call.verb == "create" => None,
        child if job::CHILDREN.contains(&child) => {
            if current.uid.as_deref() != m.object().meta("uid").and_then(Value::as_str) {
                return m.violation("deleted or patched without its UID");
            }
            if call.verb == "patch" && matches!(child, "pods" | "services") && !only_adopted(m) {
                return m.violation("a patch changed more than labels and the selector");
            }
            let since = m.earliest(m.staleness.of_others);
            let ours = m.former_owner(since).is_some();
            (!ours).then(|| m.violation("no job controls it")).flatten()
        }
        resource if resource.strip_suffix("/status") == Some(m.change.plural()) => {
            let (before, after) = (m.before(), m.object());
            (before["spec"] != after["spec"] || before.meta("labels") != after.meta("labels"))
                .then(|| m.violation("a write of the status changed more"))
                .flatten()
        }
        other => m.violation(&format!("{} {other} is not a call for an operator", call.verb)),
    }
}

/// Whether a change leaves the metadata, labels aside, and the spec, the selector aside, as they were.
fn only_adopted(m: &CheckedChange<'_>) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        rest["metadata"]["labels"] = Value::Null;
        // The server's own.
        rest["metadata"]["resourceVersion"] = Value::Null;
        rest["metadata"]["managedFields"] = Value::Null;
        if rest["kind"] == "Service" {
            rest["spec"]["selector"] = Value::Null;
        }
        rest
    };
    rest(m.before().value()) == rest(m.object().value())
}

/// I9: a child that is deleted as soon as it is created is not created again and again.
fn no_churn(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let owner = job::controller(m.object());
    let recent = m.timeline.children_of(owner).filter(|(_, child)| {
        child.plural == m.change.plural()
            && child.name == m.change.name()
            && child.owner.as_deref() == owner
            && child.created + 10_000 > m.now
    });
    let times = recent.count();
    // Each of two operators has a backoff of its own.
    let most = if m.staleness.of_own > 0 { 24 } else { 12 };
    (times >= most)
        .then(|| m.violation(&format!("created {times} times in ten seconds")))
        .flatten()
}

/// I10: the count of restarts never falls, and the start time changes only when a job is resumed or made valid.
fn honest_counters(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    if restarts(after) < restarts(before) {
        return m.violation("the count of restarts fell");
    }
    let start = |job: &Object| job["status"]["startTime"].clone();
    let resumed = job::is(before, "Suspended") || job::was_found_invalid(before);
    (!start(before).is_null() && start(before) != start(after) && !resumed)
        .then(|| m.violation("its start time changed"))
        .flatten()
}

/// I10: no condition is there twice, none contradicts another, and no more replicas are counted than a spec asks for.
fn honest_conditions(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() == Action::Deleted || m.call.is_none() {
        return None;
    }
    let job = m.object();
    let types: Vec<_> = job::conditions(job).map(|c| c["type"].as_str()).collect();
    if types.iter().collect::<BTreeSet<_>>().len() < types.len() {
        return m.violation("a condition is there twice");
    }
    let is = |condition| job::is(job, condition);
    let pairs = [
        ("Succeeded", "Failed"),
        ("Running", "Succeeded"),
        ("Running", "Failed"),
        ("Running", "Suspended"),
        ("Running", "Restarting"),
    ];
    if let Some((a, b)) = pairs.into_iter().find(|(a, b)| is(a) && is(b)) {
        return m.violation(&format!("it is {a} and {b}"));
    }
    if job::end(job).is_some() && m.staleness.of_own > 0 {
        // One operator counts pods that have ended by then, the other those that still run in its caches.
        return None;
    }
    let life = m
        .timeline
        .jobs
        .get(Json::meta(job, "uid").as_str().unwrap_or_default())?;
    // A finished job has the counts of its end, whatever its spec asks for since.
    let from = if job::end(job).is_some() {
        0
    } else {
        m.earliest(m.staleness.of_others)
    };
    let most = |role: &str| {
        let versions = life.versions_since(from).iter();
        versions.filter_map(|v| v.replicas(role)).max().unwrap_or(0)
    };
    let statuses = job["status"]["replicaStatuses"].as_object()?;
    let sum = |status: &Value| -> i64 {
        let parts = ["active", "succeeded", "failed"];
        parts.iter().map(|p| status[p].as_i64().unwrap_or(0)).sum()
    };
    let before = &m.before()["status"]["replicaStatuses"];
    let mut changed = statuses.iter().filter(|(role, status)| before[*role] != **status);
    let (role, status) = changed.find(|(role, status)| sum(status) > most(role))?;
    m.violation(&format!("more {role} replicas than there are: {status}"))
}

/// I10: the status says of a replica that it succeeded, or of the job, only if a pod did.
fn honest_successes(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    if before["status"]["recovery"]["completed"] != after["status"]["recovery"]["completed"] {
        let known = m.timeline.successes(uid);
        let newly_complete =
            |name: &&String| job::is_complete(after, name) && !job::is_complete(before, name);
        let names = job::names(after);
        if let Some(name) = names
            .iter()
            .filter(newly_complete)
            .find(|n| !known.contains(n.as_str()))
        {
            return m.violation(&format!("{name} never succeeded"));
        }
    }
    let ends = job::end(after) == Some("Succeeded") && job::end(before).is_none();
    // The operator believes what users write into a status.
    let edited = || {
        m.timeline
            .jobs
            .get(uid)
            .is_some_and(|life| life.status_edited.is_some())
    };
    (ends && m.timeline.successes(uid).is_empty() && !edited())
        .then(|| m.violation("none of its pods ever succeeded"))
        .flatten()
}

/// I11: a deletion has a reason in a state of the job that the operator may act on.
fn justified_deletion(m: &CheckedChange<'_>) -> Option<String> {
    let is_deletion = match m.change.action() {
        Action::Deleted => !job::is_deleting(m.before()),
        Action::Modified => job::is_deleting(m.object()) && !job::is_deleting(m.before()),
        Action::Added => false,
    };
    if !is_deletion || !m.acts_on_child() {
        return None;
    }
    let child = m.before();
    let name = m.change.name();
    if !job::is_labelled(child) {
        // The operator's watches do not show it any more.
        return None;
    }
    let life = m.former_owner(m.earliest(m.staleness.of_others))?;
    let has_attempt = matches!(m.change.plural(), "pods" | job::GROUPS);
    let earlier = |job: &Object| {
        let ahead = i64::from(kubelet::attempt(child)) - job::attempt(job, name);
        // An attempt so far ahead is a user's edit.
        has_attempt && !(0..=1_000_000).contains(&ahead)
    };
    let reason = |version: &JobVersion| {
        let job = version.job();
        job::end(job).is_some()
            || job::is_left_alone(job)
            || job::is_suspended(job)
            || job::is(job, "Suspended")
            || !version.names(m.change.plural(), name)
            || earlier(job)
    };
    let mut versions = life.versions_since(m.earliest(m.staleness.of_others)).iter();
    if versions.any(reason) {
        return None;
    }
    m.violation("deleted for no reason")
}

/// I13: a pod is made when what it refers to is there, as far as the operator may know.
fn environment_is_there(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let since = m.earliest(m.staleness.of_others);
    let is_there = |name: &str| {
        let mut children = m.timeline.children_of(job::controller(m.object()));
        children.any(|(_, child)| {
            child.plural == "configmaps" && child.name == name && child.deleted.is_none_or(|at| at >= since)
        })
    };
    let missing = job::needed_maps(m.object()).find(|name| !is_there(name))?;
    m.violation(&format!("it refers to {missing}, which is not there"))
}

/// I19: a launcher is made once each of its workers has started.
fn others_started_first(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let life = m.owner()?;
    let mut versions = life.objects_since(m.earliest(m.staleness.of_others));
    let is_due = |job: &Object| {
        let is_launcher = job::names_of_role(job, "Launcher").contains(m.change.name());
        let has_started = |worker: &String| {
            let mut pods = m.timeline.children_of(job::controller(m.object()));
            pods.any(|(_, pod)| pod.plural == "pods" && pod.name == *worker && pod.started)
                // The operator believes the status, whoever wrote it.
                || job::is_complete(job, worker)
        };
        !is_launcher || job::names_of_role(job, "Worker").iter().all(has_started)
    };
    if versions.any(is_due) {
        return None;
    }
    m.violation("made before all its workers had started")
}
