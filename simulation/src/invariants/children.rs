//! The invariants of the children of jobs.

use kube_memory::{Action, Object};
use serde_json::Value;

use super::CheckedChange;
use super::timeline::{ChildTimeline, JobVersion};
use crate::world::job;
use crate::world::json::Json;
use crate::world::pod;

/// I1: a replica has at most one pod that has not ended and is not being deleted.
pub(super) fn unique_rank(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let mine = m.object();
    let uid = job::controller(mine);
    let label =
        |pod: &Object, name: &str| Json::meta(pod, "labels")[name] == Json::meta(mine, "labels")[name];
    let mut others = m.timeline.children_of(uid).filter_map(|(other, child)| {
        let there = child.plural == "pods" && child.deleted.is_none();
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
pub(super) fn no_excess(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let job_timeline = m.owner()?;
    let mut versions = job_timeline
        .versions_since(m.earliest(m.staleness.of_others))
        .iter();
    if versions.any(|version| version.asks_for(m.change.plural(), m.change.name())) {
        return None;
    }
    m.violation("no version of the spec asks for it")
}

/// I3: no child is created for a finished job.
pub(super) fn nothing_after_the_end(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let ended = |version: &Object| job::end(version).is_some() && !job::was_found_invalid(version);
    let job_timeline = m.owner()?;
    if job_timeline
        .objects_since(m.earliest(m.staleness.of_own))
        .any(|v| !ended(v))
        || m.status_was_edited(job_timeline)
    {
        return None;
    }
    m.violation("created after its job finished")
}

/// I4: a replica that has succeeded according to the status does not run again.
pub(super) fn no_success_run_again(m: &CheckedChange<'_>) -> Option<String> {
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
    let job_timeline = m.owner()?;
    let known = job_timeline
        .objects_since(m.earliest(m.staleness.of_own.max(1)))
        .all(|version| job::is_complete(version, m.change.name()));
    (succeeded && known && !m.status_was_edited(job_timeline))
        .then(|| m.violation("it has succeeded, and runs again"))
        .flatten()
}

/// I5: no child is created for a job that was deleted or is being deleted.
pub(super) fn nothing_after_deletion(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() {
        return None;
    }
    let Some(uid) = job::controller(m.object()) else {
        return m.violation("created without an owner");
    };
    let Some(job_timeline) = m.timeline.jobs.get(uid) else {
        return m.violation("created for a job that never existed");
    };
    let since = m.earliest(m.staleness.of_others);
    if job_timeline.deleted.is_some_and(|gone| gone < since)
        || job_timeline.objects_since(since).all(job::is_deleting)
    {
        return m.violation("created for a job that was deleted");
    }
    None
}

/// I6: operators write only children that a job controls, statuses of jobs, and events. They delete only jobs and
/// their children.
pub(super) fn foreign_untouched(m: &CheckedChange<'_>) -> Option<String> {
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
pub(super) fn no_churn(m: &CheckedChange<'_>) -> Option<String> {
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

/// I11: a deletion has a reason in a state of the job that the operator may act on.
pub(super) fn justified_deletion(m: &CheckedChange<'_>) -> Option<String> {
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
    let job_timeline = m.former_owner(m.earliest(m.staleness.of_others))?;
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
    let since = m.earliest(m.staleness.of_others);
    if job_timeline.versions_since(since).iter().any(reason) || is_given_back(m, child, since) {
        return None;
    }
    m.violation("deleted for no reason")
}

/// Returns true if a quota refuses the rest of a job, whose pod has done no work, and another job holds pods.
fn is_given_back(m: &CheckedChange<'_>, pod: &Object, since: u64) -> bool {
    let uid = pod.meta("uid").and_then(Value::as_str);
    let started = uid.and_then(|uid| m.timeline.children.get(uid)?.started);
    let owner = job::controller(pod);
    let holds = |child: &ChildTimeline| {
        child.plural == "pods"
            && child.owner.as_deref() != owner
            && child.deleted.is_none_or(|at| at >= since)
    };
    m.change.plural() == "pods"
        && started.is_none_or(|at| at >= since)
        && m.timeline.quota_until.is_some_and(|at| at >= since)
        && m.timeline.children.values().any(holds)
}

/// I13: a pod is created only if the objects that it refers to exist, as far as the operator can know.
pub(super) fn environment_is_there(m: &CheckedChange<'_>) -> Option<String> {
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

/// I19: a pod is created only after the pods that it waits for have started or succeeded, such as a launcher after its
/// workers, and a step after the step before.
pub(super) fn others_started_first(m: &CheckedChange<'_>) -> Option<String> {
    if !m.creates() || m.change.plural() != "pods" {
        return None;
    }
    let job_timeline = m.owner()?;
    let mut versions = job_timeline.objects_since(m.earliest(m.staleness.of_others));
    let is_due = |job: &Object| {
        let has_come = |(name, must_succeed): &(String, bool)| {
            let mut pods = m.timeline.children_of(job::controller(m.object()));
            let has = |pod: &ChildTimeline| match must_succeed {
                true => pod.ever_succeeded,
                false => pod.started.is_some(),
            };
            pods.any(|(_, pod)| pod.plural == "pods" && pod.name == *name && has(pod))
                // The operator trusts the status, whoever wrote it.
                || job::is_complete(job, name)
        };
        job::waits_for(job, m.change.name()).iter().all(has_come)
    };
    if versions.any(is_due) {
        return None;
    }
    m.violation("made before all pods that it waits for had started or succeeded")
}

/// The time in milliseconds in which sidecars may finish their work after the end of a job, without the second in which
/// operators act.
const SIDECAR_GRACE_PERIOD: u64 = 599_000;

/// I26: a pod in which only sidecars run is not deleted within their grace period after the end of the job.
pub(super) fn sidecars_have_time(m: &CheckedChange<'_>) -> Option<String> {
    let is_deletion = m.change.action() == Action::Modified && !job::is_deleting(m.before());
    let only_sidecars_run = m.change.plural() == "pods" && pod::only_sidecars_run(m.before());
    if !is_deletion || !m.acts_on_child() || !only_sidecars_run || m.timeline.clocks_were_set {
        return None;
    }
    let job_timeline = m.owner()?;
    let may_delete = |job: &Object| {
        let policy = &job["spec"]["runPolicy"];
        job::end(job).is_none()
            || job::is_deleting(job)
            || job::was_found_invalid(job)
            || policy["cleanPodPolicy"] == "All"
            || policy["activeDeadlineSeconds"].is_i64()
            || !job::names(job).contains(m.change.name())
    };
    let mut versions = job_timeline.objects_since(m.earliest(m.staleness.of_others));
    let is_over = m.now >= job_timeline.ended()? + SIDECAR_GRACE_PERIOD;
    // The time of the end may have been edited.
    if is_over || versions.any(may_delete) || job_timeline.status_edited.is_some() {
        return None;
    }
    m.violation("deleted while its sidecar had time to finish its work")
}
