//! What a job has beside services and pods.

use crate::job::{Replicas, TrainingJob};
use crate::render;

use super::children::deletion;
use super::draft::Draft;
use super::types::{ChildKind, ObjectPatch};

/// Plans the creates, patches and deletes that bring the objects of an active job in line with what its kind says.
pub(super) fn reconcile<J: TrainingJob>(draft: &mut Draft<'_, J>, replicas: &Replicas<'_>) {
    let (job, observed) = (draft.job, draft.observed);
    let wanted: Vec<_> = render::objects(job, replicas);
    for object in &wanted {
        let records = observed.objects.get(&object.kind);
        match records.and_then(|records| records.get(object.name())) {
            None => draft.plan.create_objects.push(object.clone()),
            Some(record) if record.deleting || record.satisfies(object) => {}
            Some(record) => draft.plan.patch_objects.push(ObjectPatch {
                object: object.clone(),
                uid: record.uid.clone(),
            }),
        }
    }
    delete_unless(draft, |kind, name| {
        wanted
            .iter()
            .any(|o| ChildKind::Object(o.kind) == kind && o.name() == name)
    });
}

/// Plans the deletes of what a suspended or finished job has no use for, once none of its pods runs.
pub(super) fn end<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    if draft.observed.pods.values().all(|pod| pod.is_terminal()) {
        let declared = J::FRAMEWORK.objects;
        delete_unless(draft, |kind, _| {
            declared
                .iter()
                .any(|d| ChildKind::Object(d.kind) == kind && !d.while_active)
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
