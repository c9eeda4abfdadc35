//! Pods whose labels or owner another client changed, for example an admission webhook.
//!
//! A watch selects by label, so it reports a pod whose label is gone as deleted. A pod is lost only if the API server has
//! none of its name.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::api::JobStatus;
use crate::job::ObjectKind;
use crate::render;

use super::facts::Facts;
use super::failure::FailureCause;
use super::observed::{NameHolder, Observed, Phase};
use super::reasons;
use super::survey::{ObservedReplica, Situation, Survey};
use super::types::{Deletion, ObjectPatch, Plan, Requeue};

/// Time between two reads of a pod that no watch shows.
const READ_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Finds the pods without the label of the watch, which must be read by name. Of a job that has ended or is suspended, these
/// are the pods that are being deleted: only a read shows that they are gone.
pub(super) fn hidden(facts: &Facts<'_>, status: &JobStatus) -> Plan {
    let (job, observed, again) = (facts.job, facts.observed, read_again(facts.now));
    let [operator, ..] = render::job_labels(job);
    let is_active = !status.is_finished() && !job.policy.suspend;
    let pods = observed.pods.values();
    let mut hidden = pods
        .filter(|p| (is_active || p.deleting) && !p.has_labels([&operator]))
        .peekable();
    if hidden.peek().is_none() {
        return Plan::default();
    }
    let names = hidden.map(|pod| &pod.name);
    Plan {
        unread: names
            .filter(|name| !observed.read.contains_key(*name))
            .cloned()
            .collect(),
        requeue: again,
        ..Plan::default()
    }
}

/// Finds the pods that must be read by name because they seem lost.
pub(super) fn lost(observed: &Observed, survey: &Survey<'_>) -> Plan {
    let is_lost = |r: &&ObservedReplica<'_>| match &r.situation {
        Situation::Failed(failure) => failure.cause == FailureCause::Lost,
        _ => false,
    };
    let names = survey.replicas().filter(is_lost).map(|replica| &replica.name);
    Plan {
        unread: names
            .filter(|name| !observed.read.contains_key(*name))
            .cloned()
            .collect(),
        ..Plan::default()
    }
}

/// Returns the reconcile that reads a pod again.
fn read_again(now: Timestamp) -> Option<Requeue> {
    let at = now.checked_add(READ_INTERVAL).ok()?;
    let why = "a pod that no watch shows";
    Some(Requeue { at, why })
}

/// Plans the patches of pods that lack labels of the operator and are not among `deletes`. Reports pods that the job has
/// ceased to control: another client released them on purpose, so they are left alone.
pub(super) fn repair(facts: &Facts<'_>, deletes: &[Deletion]) -> Plan {
    let (job, observed, again) = (facts.job, facts.observed, read_again(facts.now));
    let (mut plan, mut not_ours) = (Plan::default(), Vec::new());
    for role in &job.topology.roles {
        let of_role = render::role_labels(job, role);
        let group = render::gang_label(job, role);
        for replica in role.all() {
            let name = replica.pod_name();
            let Some(pod) = observed.pods.get(&name) else {
                let holder = observed.read.get(&name);
                if matches!(holder, Some(NameHolder::Job | NameHolder::Other)) {
                    plan.requeue.clone_from(&again);
                }
                not_ours.extend((holder == Some(&NameHolder::Other)).then_some(name));
                continue;
            };
            let index = render::index_label(job, &replica);
            // Only the scheduler reads the label of the group.
            let group = group
                .as_ref()
                .filter(|_| pod.phase == Phase::Pending && !pod.scheduled);
            let wanted = || of_role.iter().chain(&index).chain(group);
            let goes = || deletes.iter().any(|deletion| deletion.uid == pod.uid);
            if !pod.deleting && !pod.has_labels(wanted()) && !goes() {
                let mut object = ObjectKind::of::<Pod>().object(name, json!({}));
                object.metadata.labels = Some(wanted().cloned().collect());
                let uid = pod.uid.clone();
                plan.patch_objects.push(ObjectPatch { object, uid });
            }
        }
    }
    let Some(name) = not_ours.first() else {
        return plan;
    };
    let message = format!(
        "pod {name} exists, but this job does not control it, because another client created it or removed its owner \
         reference; its result does not count; delete the pod so that the replica can be restarted"
    );
    plan.and(Plan::notices(
        reasons::POD_NOT_CONTROLLED,
        message,
        not_ours.len(),
    ))
}
