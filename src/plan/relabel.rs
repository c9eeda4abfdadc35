//! Pods whose labels or owner another client changed, for example an admission webhook.
//!
//! A watch selects by label, so it reports a pod whose label is gone as deleted. A pod is lost only if the API server has
//! none of its name.

use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::job::ObjectKind;
use crate::render;

use super::draft::Draft;
use super::failure::FailureCause;
use super::notices;
use super::observed::{NameHolder, Phase, PodRecord};
use super::reasons;
use super::survey::{ObservedReplica, Situation, Survey};
use super::types::ObjectPatch;

/// Time between two reads of a pod that no watch shows.
const READ_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Finds the pods without the label of the watch, which must be read by name. Of a job that has ended or is suspended, these
/// are the pods that are being deleted: only a read shows that they are gone.
pub(super) fn find_hidden(draft: &mut Draft<'_>) {
    let [operator, ..] = render::job_labels(draft.job);
    let is_active = !draft.status.is_finished() && !draft.job.policy.suspend;
    let is_hidden = |pod: &&Arc<PodRecord>| (is_active || pod.deleting) && !pod.has_labels([&operator]);
    for pod in draft.observed.pods.values().filter(is_hidden) {
        read_again(draft);
        if !draft.observed.read.contains_key(&pod.name) {
            draft.plan.unread.push(pod.name.clone());
        }
    }
}

/// Finds the pods that must be read by name because they seem lost.
pub(super) fn find_lost(draft: &mut Draft<'_>, survey: &Survey<'_>) {
    for ObservedReplica { name, situation, .. } in survey.replicas() {
        let is_lost = matches!(situation, Situation::Failed(f) if f.cause == FailureCause::Lost);
        if is_lost && !draft.observed.read.contains_key(name) {
            draft.plan.unread.push(name.clone());
        }
    }
}

fn read_again(draft: &mut Draft<'_>) {
    if let Ok(at) = draft.now.checked_add(READ_INTERVAL) {
        draft.plan.requeue_at(at, "a pod that no watch shows");
    }
}

/// Plans the patches of pods that lack labels of the operator. Reports pods that the job has ceased to control: another
/// client released them on purpose, so they are left alone.
pub(super) fn repair(draft: &mut Draft<'_>) {
    let (job, observed) = (draft.job, draft.observed);
    let mut not_ours = Vec::new();
    for role in &job.topology.roles {
        let of_role = render::role_labels(job, role);
        let group = render::gang_label(job, role);
        for replica in role.all() {
            let name = replica.pod_name();
            let Some(pod) = observed.pods.get(&name) else {
                let holder = observed.read.get(&name);
                if holder.is_some_and(|holder| *holder != NameHolder::Nobody) {
                    read_again(draft);
                }
                let is_not_ours = holder.is_some_and(|holder| *holder == NameHolder::Other);
                not_ours.extend(is_not_ours.then_some(name));
                continue;
            };
            let index = render::index_label(job, &replica);
            // Only the scheduler reads the label of the group.
            let group = group
                .as_ref()
                .filter(|_| pod.phase == Phase::Pending && !pod.scheduled);
            let wanted = || of_role.iter().chain(&index).chain(group);
            let goes = || draft.plan.delete.iter().any(|deletion| deletion.uid == pod.uid);
            if !pod.deleting && !pod.has_labels(wanted()) && !goes() {
                let mut object = ObjectKind::of::<Pod>().object(name, json!({}));
                object.metadata.labels = Some(wanted().cloned().collect());
                let uid = pod.uid.clone();
                draft.plan.patch_objects.push(ObjectPatch { object, uid });
            }
        }
    }
    if let Some(name) = not_ours.first() {
        let message = format!(
            "pod {name} exists, but this job does not control it, because another client created it or removed its owner \
             reference; its result does not count; delete the pod so that the replica can be restarted"
        );
        notices::push(draft, reasons::POD_NOT_CONTROLLED, message, not_ours.len() - 1);
    }
}
