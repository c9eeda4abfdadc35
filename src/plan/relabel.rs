//! Pods whose labels or owner another client changed, for example an admission webhook.
//!
//! A watch selects by label, so it reports a pod whose label is gone as deleted. A pod is lost only if the API server has
//! none of its name.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::job::{ObjectKind, Replica, TrainingJob};
use crate::render;

use super::draft::Draft;
use super::failure::FailureCause;
use super::notices;
use super::observed::NameHolder;
use super::reasons;
use super::survey::{ObservedReplica, ObservedRole};
use super::types::ObjectPatch;

/// Time between two reads of a pod that no watch shows.
const READ_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Finds the pods that must be read by name: those that seem lost, and those without the label of the watch.
pub(super) fn find_unread<J: TrainingJob>(draft: &mut Draft<'_, J>, survey: &[ObservedRole<'_>]) {
    let observed = draft.observed;
    for of_role in survey {
        let [operator, ..] = render::job_labels(draft.job);
        for (index, replica) in (0..).zip(&of_role.replicas) {
            let role = of_role.role;
            let is_lost =
                matches!(replica, ObservedReplica::Failed(f) if matches!(f.cause, FailureCause::Lost));
            let name = Replica { role, index }.pod_name();
            let pod = observed.pods.get(&name);
            let is_hidden = pod.is_some_and(|pod| !pod.has_labels([&operator]));
            if (is_lost || is_hidden) && !observed.read.contains_key(&name) {
                draft.plan.unread.push(name);
            }
        }
    }
}

/// Plans the patches of pods that lack labels of the operator. Reports pods that the job has ceased to control: another
/// client released them on purpose, so they are left alone.
pub(super) fn repair<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let (job, observed) = (draft.job, draft.observed);
    let mut not_ours = Vec::new();
    let mut is_any_hidden = false;
    for role in &job.topology.roles {
        let of_role = render::role_labels(job, role);
        for replica in role.all() {
            let name = replica.pod_name();
            let Some(pod) = observed.pods.get(&name) else {
                let holder = observed.read.get(&name);
                is_any_hidden |= holder.is_some_and(|holder| *holder != NameHolder::Nobody);
                not_ours.extend(
                    holder
                        .filter(|holder| **holder == NameHolder::Other)
                        .map(|_| name),
                );
                continue;
            };
            let index = render::index_label(job, &replica);
            is_any_hidden |= !pod.has_labels(&of_role[..1]);
            if !pod.deleting && !pod.has_labels(of_role.iter().chain(&index)) {
                let mut object = ObjectKind::of::<Pod>().object(name, json!({}));
                object.metadata.labels = Some(of_role.iter().cloned().chain(index).collect());
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
    if is_any_hidden && let Ok(at) = draft.now.checked_add(READ_INTERVAL) {
        draft.plan.requeue_at(at, "a pod that no watch shows");
    }
}
