//! The invariants that are checked at each change.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube_memory::{Action, Object};
use serde_json::Value;

use super::timeline::{JobTimeline, JobVersion};
use super::{Check, CheckedChange, conditions, gangs, policies, queue};
use crate::call::CurrentCall;
use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;

/// All invariants of changes, with their numbers in docs/maintainers/reliability.md.
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
    ("I23", conditions::are_in_order),
];

impl CheckedChange<'_> {
    pub(super) fn object(&self) -> &Object {
        self.change.object()
    }

    /// Returns the object before the change, or the object itself if it is new.
    pub(super) fn before(&self) -> &Object {
        self.change.previous().unwrap_or(self.change.object())
    }

    pub(super) fn is_job(&self) -> bool {
        job::PLURALS.contains(&self.change.plural())
    }

    /// Returns true if an operator's call created a child.
    pub(super) fn creates(&self) -> bool {
        self.change.action() == Action::Added && self.acts_on_child()
    }

    /// Returns true if an operator's call named this child, and not its owner.
    pub(super) fn acts_on_child(&self) -> bool {
        let plural = self.change.plural();
        let verb = match self.change.action() {
            Action::Added => "create",
            // If another call caused the deletion, the garbage collector carried it out.
            Action::Modified | Action::Deleted => "delete",
        };
        let is_it = |current: &CurrentCall| current.call.is(verb, plural);
        job::CHILDREN.contains(&plural) && self.call.is_some_and(is_it)
    }

    /// Returns the time of the oldest state that the operator may act on. `staleness` is the allowed age in
    /// milliseconds.
    pub(super) fn earliest(&self, staleness: u64) -> u64 {
        self.call
            .map_or(self.now, |current| current.sent)
            .saturating_sub(staleness)
    }

    /// Returns true if the job's status was edited by a user since the oldest state that the operator may act on.
    fn status_was_edited(&self, life: &JobTimeline) -> bool {
        life.status_edited
            .is_some_and(|at| at >= self.earliest(self.staleness.of_others))
    }

    /// Returns the job that controls the object.
    pub(super) fn owner(&self) -> Option<&JobTimeline> {
        self.timeline.jobs.get(job::controller(self.before())?)
    }

    /// Returns the job that controls the object, or that controlled it at `since` or later.
    fn former_owner(&self, since: u64) -> Option<&JobTimeline> {
        let child = self.timeline.children.get(self.before().meta("uid")?.as_str()?)?;
        let recently = child.orphaned.is_none_or(|at| at >= since);
        self.timeline.jobs.get(child.owner.as_ref().filter(|_| recently)?)
    }

    pub(super) fn violation(&self, what: &str) -> Option<String> {
        Some(format!("{} {}: {what}", self.change.kind(), self.change.name()))
    }
}

/// I1: a replica has at most one pod that has not ended and is not being deleted.
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
            && !pod::has_ended(other)
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

/// I2: a child is created only if a spec that the operator may still see requests it.
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

/// I3: a finished job stays finished, and keeps its completion time. A job that failed because of an invalid spec may
/// run again.
fn final_is_final(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified {
        return None;
    }
    // Users may edit a status, and the operator trusts the edit.
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
    (is_time(&time(before)) && time(before) != time(after))
        .then(|| m.violation("its completion time changed"))
        .flatten()
}

/// I3: no child is created for a finished job.
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

/// I4: a replica that has succeeded according to the status does not run again.
fn no_success_run_again(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let uid = job::controller(m.object())?;
    let attempt = pod::attempt(m.object());
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

/// I5: no child is created for a job that was deleted or is being deleted.
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

/// I6: operators write only children that a job controls, statuses of jobs, and events. They delete only jobs and
/// their children.
fn foreign_untouched(m: &CheckedChange<'_>) -> Option<String> {
    let current = m.call?;
    if m.change.plural() == "resourcequotas" {
        // The API server itself counts the created object in the quota.
        return None;
    }
    let call = &current.call;
    match call.resource.as_str() {
        "events" if matches!(call.verb, "create" | "patch") => None,
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

/// Returns true if a change affects only the labels of the metadata and the selector of the spec.
fn only_adopted(m: &CheckedChange<'_>) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        rest["metadata"]["labels"] = Value::Null;
        // Written by the server.
        rest["metadata"]["resourceVersion"] = Value::Null;
        rest["metadata"]["managedFields"] = Value::Null;
        if rest["kind"] == "Service" {
            rest["spec"]["selector"] = Value::Null;
        }
        rest
    };
    rest(m.before().value()) == rest(m.object().value())
}

/// I9: a child that is deleted right after its creation is not created over and over.
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
    // With two operators, each has its own backoff.
    let most = if m.staleness.of_own > 0 { 24 } else { 12 };
    (times >= most)
        .then(|| m.violation(&format!("created {times} times in ten seconds")))
        .flatten()
}

/// The highest plausible count of restarts. A higher count was not written by an operator.
const MAX_PLAUSIBLE_RESTARTS: i64 = 500_000_000;

/// Returns true for a time that an operator may have written.
fn is_time(value: &Value) -> bool {
    let text = value.as_str().filter(|text| *text < "9000");
    text.is_some_and(|text| text.parse::<Timestamp>().is_ok())
}

/// I10: the count of restarts never falls. The start time changes only when a job is resumed or made valid, or when a
/// gang scheduler admits the job for the first time.
fn honest_counters(m: &CheckedChange<'_>) -> Option<String> {
    if !m.is_job() || m.change.action() != Action::Modified || m.call.is_none() {
        return None;
    }
    let (before, after) = (m.before(), m.object());
    let restarts = |job: &Object| job["status"]["restartCount"].as_i64().unwrap_or(0);
    if restarts(before) <= MAX_PLAUSIBLE_RESTARTS && restarts(after) < restarts(before) {
        return m.violation("the count of restarts fell");
    }
    let start = |job: &Object| job["status"]["startTime"].clone();
    let resumed = job::is(before, "Suspended") || job::was_found_invalid(before);
    let counts = before["status"]["replicaStatuses"].as_object();
    // The counts are written when the job is first admitted.
    let waited = counts.is_none_or(serde_json::Map::is_empty);
    (is_time(&start(before)) && start(before) != start(after) && !resumed && !waited)
        .then(|| m.violation("its start time changed"))
        .flatten()
}

/// I10: condition types are unique, conditions do not contradict each other, and the counts are at most the number of
/// replicas in a spec.
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
        // One operator counts pods that have ended by then. The other operator counts those that still run in its
        // caches.
        return None;
    }
    let life = m
        .timeline
        .jobs
        .get(Json::meta(job, "uid").as_str().unwrap_or_default())?;
    // A finished job keeps the counts of its end, even if its spec changes.
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
    let parts = |status: &Value| {
        ["active", "succeeded", "failed"].map(|part| status[part].as_i64().unwrap_or(0).max(0))
    };
    let sum = |status: &Value| -> i64 { parts(status).iter().sum() };
    let before = &m.before()["status"]["replicaStatuses"];
    // A count that a user wrote into the status of a finished job stays.
    let grows = |role: &str, status: &Value| {
        let mut pairs = parts(&before[role]).into_iter().zip(parts(status));
        pairs.any(|(old, new)| new > old)
    };
    let mut changed = statuses.iter().filter(|(role, status)| grows(role, status));
    // A suspended job counts all remaining pods, including those beyond a reduced number of replicas.
    let (role, status) =
        changed.find(|(role, status)| !job::is(job, "Suspended") && sum(status) > most(role))?;
    m.violation(&format!("more {role} replicas than there are: {status}"))
}

/// I10: the status reports a replica or the job as succeeded only if a pod succeeded. A pod that was removed did not
/// succeed, whatever its exit code.
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
    // The operator trusts edits of a status by users.
    let edited = || m.timeline.is_edited(uid);
    let known = m.timeline.successes(uid);
    let remembers = after["status"]["recovery"]["completed"].is_object();
    let is_success =
        |name: &String| known.contains(name.as_str()) && (!remembers || job::is_complete(after, name));
    (ends && !job::names(after).iter().any(is_success) && !edited())
        .then(|| m.violation("none of its replicas has succeeded"))
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
        // The child is no longer in the operator's watches.
        return None;
    }
    let life = m.former_owner(m.earliest(m.staleness.of_others))?;
    let has_attempt = matches!(m.change.plural(), "pods" | job::GROUPS);
    let earlier = |job: &Object| {
        let ahead = i64::from(pod::attempt(child)) - job::attempt(job, name);
        // An attempt that is so far ahead was written by a user.
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
    // A RoleBinding is deleted if its Role or ServiceAccount is no longer controlled by the job, or was just created
    // by another operator.
    let since = m.earliest(m.staleness.of_own);
    let is_own = |plural: &str| {
        let mut children = m.timeline.children_of(job::controller(child));
        children.any(|(_, child)| {
            child.plural == plural
                && child.name == name
                && child.deleted.is_none()
                && child.orphaned.is_none()
                && child.created <= since
        })
    };
    if m.change.plural() == "rolebindings" && !(is_own("roles") && is_own("serviceaccounts")) {
        return None;
    }
    let mut versions = life.versions_since(m.earliest(m.staleness.of_others)).iter();
    if versions.any(reason) {
        return None;
    }
    m.violation("deleted for no reason")
}

/// I13: a pod is created only if the objects that it refers to exist, as far as the operator can know.
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
    let missing = pod::needed_maps(m.object()).find(|name| !is_there(name))?;
    m.violation(&format!("it refers to {missing}, which is not there"))
}

/// I19: a launcher is created only after each of its workers has started.
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
                // The operator trusts the status, whoever wrote it.
                || job::is_complete(job, worker)
        };
        !is_launcher || job::names_of_role(job, "Worker").iter().all(has_started)
    };
    if versions.any(is_due) {
        return None;
    }
    m.violation("made before all its workers had started")
}
