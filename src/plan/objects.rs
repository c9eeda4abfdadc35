//! What a job has beside services and pods.

use crate::job::{JobObject, ObjectDefinition, ObjectKind, Replicas, SharedEnvironment, TrainingJob};
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
    let topology = &draft.job.topology;
    delete_unless(draft, |kind, name| {
        // Pods from before a change of the number of replicas refer to what was shared then.
        wanted.iter().any(|o| o.kind == kind && o.name() == name)
            || SharedEnvironment::is_one(topology, kind, name)
    });
}

/// The same for a suspended or finished job: nothing is created, what stays says what is true now, and the rest goes once
/// none of the pods runs.
pub(super) fn end<J: TrainingJob>(draft: &mut Draft<'_, J>) {
    if draft.observed.objects.values().all(|records| records.is_empty()) {
        return;
    }
    let topology = &draft.job.topology;
    let stays = |kind, name: &str| {
        let is_this = |d: &ObjectDefinition| d.kind == kind;
        match SharedEnvironment::is_one(topology, kind, name) {
            true => !SharedEnvironment::OBJECT.while_active,
            false => J::FRAMEWORK.objects.iter().any(|d| is_this(d) && !d.while_active),
        }
    };
    let survey = survey(draft.job, &draft.status, draft.observed);
    let wanted = render::objects(draft.job, &states(&draft.job.topology, &survey)).into_iter();
    let wanted: Vec<_> = wanted.filter(|o| stays(o.kind, o.name())).collect();
    patch(draft, &wanted);
    if draft.observed.pods.values().all(|pod| pod.is_terminal()) {
        delete_unless(draft, stays);
    }
}

/// Those that are there and differ from what they are to be.
fn patch<J: TrainingJob>(draft: &mut Draft<'_, J>, wanted: &[JobObject]) {
    // What is shared never changes; its name would.
    let is_shared =
        |object: &JobObject| SharedEnvironment::is_one(&draft.job.topology, object.kind, object.name());
    for object in wanted.iter().filter(|object| !is_shared(object)) {
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

fn delete_unless<J: TrainingJob>(draft: &mut Draft<'_, J>, stays: impl Fn(ObjectKind, &str) -> bool) {
    for (kind, records) in &draft.observed.objects {
        let goes = records.values().filter(|r| !r.deleting && !stays(*kind, &r.name));
        let kind = ChildKind::Object(*kind);
        draft
            .plan
            .delete
            .extend(goes.map(|record| deletion(kind, &record.name, &record.uid)));
    }
}
