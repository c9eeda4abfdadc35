//! What a job has beside services and pods.

use crate::job::{JobObject, Replicas, TrainingJob};
use crate::render;

use super::children::deletion;
use super::draft::Draft;
use super::survey::{states, survey};
use super::types::{ChildKind, ObjectPatch};

/// Plans the creates, patches and deletes that bring the objects of an active job in line with what its kind says.
pub(super) fn reconcile<J: TrainingJob>(draft: &mut Draft<'_, J>, replicas: &Replicas<'_>) {
    let wanted = render::objects(draft.job, replicas);
    for object in &wanted {
        let records = draft.observed.objects.get(&object.kind);
        if records.is_none_or(|records| !records.contains_key(object.name())) {
            draft.plan.create_objects.push(object.clone());
        }
    }
    patch(draft, &wanted);
    delete_unless(draft, |kind, name| {
        wanted
            .iter()
            .any(|o| ChildKind::Object(o.kind) == kind && o.name() == name)
    });
}

/// The same for a suspended or finished job: nothing is created, what stays says what is true now, and the rest goes once
/// none of the pods runs.
pub(super) fn end<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    let declared = J::FRAMEWORK.objects;
    if declared.is_empty() {
        return;
    }
    let stays = |kind| {
        declared
            .iter()
            .any(|d| ChildKind::Object(d.kind) == kind && !d.while_active)
    };
    let survey = survey(draft.job, &draft.status, draft.observed);
    let wanted = render::objects(draft.job, &states(&draft.job.topology, &survey)).into_iter();
    let wanted: Vec<_> = wanted.filter(|o| stays(ChildKind::Object(o.kind))).collect();
    patch(draft, &wanted);
    if draft.observed.pods.values().all(|pod| pod.is_terminal()) {
        delete_unless(draft, |kind, _| stays(kind));
    }
}

/// Those that are there and differ from what they are to be.
fn patch<J: TrainingJob>(draft: &mut Draft<'_, J>, wanted: &[JobObject]) {
    for object in wanted {
        let records = draft.observed.objects.get(&object.kind);
        let record = records.and_then(|records| records.get(object.name()));
        let Some(record) = record.filter(|record| !record.deleting && !record.satisfies(object)) else {
            continue;
        };
        draft.plan.patch_objects.push(ObjectPatch {
            object: object.clone(),
            uid: record.uid.clone(),
        });
    }
}

fn delete_unless<J: TrainingJob>(draft: &mut Draft<'_, J>, stays: impl Fn(ChildKind, &str) -> bool) {
    for (kind, records) in &draft.observed.objects {
        let kind = ChildKind::Object(*kind);
        let goes = records.values().filter(|r| !r.deleting && !stays(kind, &r.name));
        draft
            .plan
            .delete
            .extend(goes.map(|record| deletion(kind, &record.name, &record.uid)));
    }
}
