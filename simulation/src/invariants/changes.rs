//! The invariants that each change is held against.

use std::collections::BTreeSet;

use kube_memory::{Action, Object};
use serde_json::Value;

use super::memory::{JobLife, Version};
use super::{Check, Moment};
use crate::job::{self, Json};
use crate::kubelet;

/// All of them.
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
];

impl Moment<'_> {
    fn object(&self) -> &Object {
        self.change.object()
    }

    /// The object as it was before the change, or as it is if it is new.
    fn before(&self) -> &Object {
        self.change.previous().unwrap_or(self.change.object())
    }

    fn is_job(&self) -> bool {
        job::PLURALS.contains(&self.change.plural())
    }

    /// Whether an operator made a pod or service.
    fn creates(&self) -> bool {
        self.change.action() == Action::Added && self.acts_on_child()
    }

    /// Whether an operator's call was about this very pod or service, not about its owner.
    fn acts_on_child(&self) -> bool {
        let plural = self.change.plural();
        let verb = match self.change.action() {
            Action::Added => "create",
            // What goes in the wake of a create, the garbage collector took.
            Action::Modified | Action::Deleted => "delete",
        };
        let about = |cause: &crate::call::Cause| cause.call.is(verb, plural);
        matches!(plural, "pods" | "services") && self.cause.is_some_and(about)
    }

    /// When an operator's view of what `own` operators did, or others, may be from at the earliest.
    fn since(&self, patience: u64) -> u64 {
        self.cause.map_or(self.now, |c| c.sent).saturating_sub(patience)
    }

    /// Whether somebody wrote the status of this job while the view may be from that an operator acts on.
    fn status_was_edited(&self, life: &JobLife) -> bool {
        life.status_edited
            .is_some_and(|at| at >= self.since(self.patience.others))
    }

    /// The job that controls the object.
    fn owner(&self) -> Option<&JobLife> {
        self.memory.jobs.get(job::controller(self.before())?)
    }

    /// The job that controls the object, or did a moment ago.
    fn former_owner(&self, since: u64) -> Option<&JobLife> {
        let child = self.memory.children.get(self.before().meta("uid")?.as_str()?)?;
        let recently = child.orphaned.is_none_or(|at| at >= since);
        self.memory.jobs.get(child.owner.as_ref().filter(|_| recently)?)
    }

    fn says(&self, what: &str) -> Option<String> {
        Some(format!("{} {}: {what}", self.change.kind(), self.change.name()))
    }
}

/// I1: of a job's replica there is at most one pod that neither ended nor is being deleted.
fn unique_rank(m: &Moment<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let mine = m.object();
    let uid = job::controller(mine);
    let label =
        |pod: &Object, name: &str| Json::meta(pod, "labels")[name] == Json::meta(mine, "labels")[name];
    let mut others = m.memory.children_of(uid).filter_map(|(other, life)| {
        let there = life.plural == "pods" && life.gone.is_none();
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
    m.says(&format!(
        "a second pod of this rank, beside {}",
        Json::meta(&*other, "name")
    ))
}

/// I2: nothing is made that the spec does not ask for, or did not a moment ago.
fn no_excess(m: &Moment<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let life = m.owner()?;
    let mut versions = life.versions_since(m.since(m.patience.others)).iter();
    if versions.any(|version| version.asks_for(m.change.name())) {
        return None;
    }
    m.says("no version of the spec asks for it")
}

/// I3: an end is never taken back, and has one time. Of a job that failed for its spec, it may be.
fn final_is_final(m: &Moment<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified {
        return None;
    }
    // Anybody may edit a status; the operator goes on from what it says.
    m.cause?;
    let (before, after) = (m.before(), m.object());
    let end = job::end(before)?;
    if job::is_refused(before) {
        return None;
    }
    if job::end(after) != Some(end) {
        return m.says(&format!("{end} was taken back"));
    }
    let time = |job: &Object| job["status"]["completionTime"].clone();
    (!time(before).is_null() && time(before) != time(after))
        .then(|| m.says("its completion time changed"))
        .flatten()
}

/// I3: nothing is made for a job that has ended.
fn nothing_after_the_end(m: &Moment<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let ended = |version: &Object| job::end(version).is_some() && !job::is_refused(version);
    let life = m.owner()?;
    if life.since(m.since(m.patience.own)).any(|v| !ended(v)) || m.status_was_edited(life) {
        return None;
    }
    m.says("made after the end of its job")
}

/// I4: no replica runs again that the status remembers to have ended well.
fn no_success_run_again(m: &Moment<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let uid = job::controller(m.object())?;
    let attempt = kubelet::attempt(m.object());
    let succeeded = m.memory.children_of(Some(uid)).any(|(_, pod)| {
        pod.plural == "pods"
            && pod.owner.as_deref() == Some(uid)
            && pod.name == m.change.name()
            && pod.attempt == attempt
            && pod.succeeded.is_some()
    });
    let life = m.owner()?;
    let known = life
        .since(m.since(m.patience.own.max(1)))
        .all(|version| job::is_complete(version, m.change.name()));
    (succeeded && known && !m.status_was_edited(life))
        .then(|| m.says("it has ended well, and is run again"))
        .flatten()
}

/// I5: nothing is made for a job that is gone or going.
fn nothing_after_deletion(m: &Moment<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let Some(uid) = job::controller(m.object()) else {
        return m.says("made without an owner");
    };
    let Some(life) = m.memory.jobs.get(uid) else {
        return m.says("made for a job that never was");
    };
    let since = m.since(m.patience.others);
    if life.gone.is_some_and(|gone| gone < since) || life.since(since).all(job::is_deleting) {
        return m.says("made for a job that is gone");
    }
    None
}

/// I6: operators change pods and services that a job of theirs controls, statuses of jobs, and events.
fn foreign_untouched(m: &Moment<'_>) -> Option<String> {
    let cause = m.cause?;
    if m.change.plural() == "resourcequotas" {
        // The API server counts what a call has made or deleted.
        return None;
    }
    let call = &cause.call;
    match call.resource.as_str() {
        "events" if call.verb == "create" => None,
        resource if job::PLURALS.contains(&resource) && call.verb == "delete" => None,
        "pods" | "services" if call.verb == "create" => None,
        "pods" | "services" => {
            if cause.uid.as_deref() != m.object().meta("uid").and_then(Value::as_str) {
                return m.says("deleted without its UID");
            }
            let since = m.since(m.patience.others);
            let ours = m.former_owner(since).is_some();
            (!ours).then(|| m.says("it is no job's")).flatten()
        }
        resource if resource.strip_suffix("/status") == Some(m.change.plural()) => {
            let (before, after) = (m.before(), m.object());
            (before["spec"] != after["spec"] || before.meta("labels") != after.meta("labels"))
                .then(|| m.says("a write of the status changed more"))
                .flatten()
        }
        other => m.says(&format!("{} {other} is not an operator's to do", call.verb)),
    }
}

/// I9: what goes as soon as it is made is not made again and again.
fn no_churn(m: &Moment<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let owner = job::controller(m.object());
    let recent = m.memory.children_of(owner).filter(|(_, child)| {
        child.plural == m.change.plural()
            && child.name == m.change.name()
            && child.owner.as_deref() == owner
            && child.made + 10_000 > m.now
    });
    let times = recent.count();
    // Each of two operators keeps a pace of its own.
    let most = if m.patience.own > 0 { 24 } else { 12 };
    (times >= most)
        .then(|| m.says(&format!("made {times} times in ten seconds")))
        .flatten()
}

/// I10: the count of restarts never falls, and a job starts once, or once more when it is resumed.
fn honest_counters(m: &Moment<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.cause.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    if restarts(after) < restarts(before) {
        return m.says("the count of restarts fell");
    }
    let start = |job: &Object| job["status"]["startTime"].clone();
    let resumed = job::is(before, "Suspended") || job::is_refused(before);
    (!start(before).is_null() && start(before) != start(after) && !resumed)
        .then(|| m.says("its start time changed"))
        .flatten()
}

/// I10: no condition twice, none that contradicts another, and no more replicas than there may be.
fn honest_conditions(m: &Moment<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() == Action::Deleted || m.cause.is_none() {
        return None;
    }
    let job = m.object();
    let types: Vec<_> = job::conditions(job).map(|c| c["type"].as_str()).collect();
    if types.iter().collect::<BTreeSet<_>>().len() < types.len() {
        return m.says("a condition is there twice");
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
        return m.says(&format!("it is {a} and {b}"));
    }
    if job::end(job).is_some() && m.patience.own > 0 {
        // One leader counts what has ended by then, the other what in its view still runs.
        return None;
    }
    let life = m
        .memory
        .jobs
        .get(Json::meta(job, "uid").as_str().unwrap_or_default())?;
    // What an ended job counts is from its end, whatever its spec asks for since.
    let from = if job::end(job).is_some() {
        0
    } else {
        m.since(m.patience.others)
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
    let mut told = statuses.iter().filter(|(role, status)| before[*role] != **status);
    let (role, status) = told.find(|(role, status)| sum(status) > most(role))?;
    m.says(&format!("more {role} replicas than there are: {status}"))
}

/// I10: of no replica is it told that it ended well, nor of a job, if none ever did.
fn honest_successes(m: &Moment<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.cause.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let uid = after.meta("uid")?.as_str()?;
    if before["status"]["recovery"]["completed"] != after["status"]["recovery"]["completed"] {
        let known = m.memory.successes(uid);
        let told = |name: &&String| job::is_complete(after, name) && !job::is_complete(before, name);
        let names = job::names(after);
        if let Some(name) = names.iter().filter(told).find(|n| !known.contains(n.as_str())) {
            return m.says(&format!("{name} never ended well"));
        }
    }
    let ends = job::end(after) == Some("Succeeded") && job::end(before).is_none();
    // What somebody writes into a status is believed.
    let edited = || {
        m.memory
            .jobs
            .get(uid)
            .is_some_and(|life| life.status_edited.is_some())
    };
    (ends && m.memory.successes(uid).is_empty() && !edited())
        .then(|| m.says("no pod of it ever ended well"))
        .flatten()
}

/// I11: a deletion follows from what is stored, or was a moment ago.
fn justified_deletion(m: &Moment<'_>) -> Option<String> {
    let going = match m.change.action() {
        Action::Deleted => !job::is_deleting(m.before()),
        Action::Modified => job::is_deleting(m.object()) && !job::is_deleting(m.before()),
        Action::Added => false,
    };
    if !going || !m.acts_on_child() {
        return None;
    }
    let child = m.before();
    let name = m.change.name();
    if !job::is_labelled(child) {
        // No watch tells of it any more.
        return None;
    }
    let life = m.former_owner(m.since(m.patience.others))?;
    let is_pod = m.change.plural() == "pods";
    let earlier = |job: &Object| {
        let ahead = i64::from(kubelet::attempt(child)) - job::attempt(job, name);
        // Of an attempt so far ahead that somebody must have made it up.
        is_pod && !(0..=1_000_000).contains(&ahead)
    };
    let reason = |version: &Version| {
        let job = version.job();
        job::end(job).is_some()
            || job::is_suspended(job)
            || job::is(job, "Suspended")
            || !version.names(name)
            || earlier(job)
    };
    let mut versions = life.versions_since(m.since(m.patience.others)).iter();
    if versions.any(reason) {
        return None;
    }
    m.says("deleted for no reason")
}
