//! What a job has beside the services and pods of its replicas.

use std::borrow::Cow;
use std::sync::Arc;

use crate::job::{
    JobObject, ObjectDefinition, ObjectKind, ReplicaState, Replicas, SharedEnvironment, TrainingJob,
};
use crate::render;
use crate::validate::ValidJob;

use super::children::deletion;
use super::draft::Draft;
use super::gang;
use super::observed::{ObjectRecord, Observed};
use super::survey::{states, survey};
use super::types::{ChildKind, ObjectPatch};

/// The same, with the pods and services that a kind declares as objects among the objects, and no more among those of the
/// replicas. Of these no more is known than that they are there, so they are taken to be as they should.
pub(super) fn set_apart<'o, J: TrainingJob>(
    job: &ValidJob<'_, J>,
    observed: &'o Observed,
) -> Cow<'o, Observed> {
    let is_object = |d: &ObjectDefinition| matches!(d.kind.into(), ChildKind::Object(_));
    if J::FRAMEWORK.objects.iter().all(is_object) {
        return Cow::Borrowed(observed);
    }
    let nobody = Replicas::new(&job.topology, |_, _| ReplicaState::Absent);
    let mut apart = observed.clone();
    for object in render::objects(job, &nobody) {
        let (name, content) = (object.name(), ObjectRecord::from(&object));
        let found = match object.kind.into() {
            ChildKind::Object(_) => None,
            ChildKind::Service => apart.services.remove(name).map(|s| (s.uid.clone(), s.deleting)),
            // One that has ended is left where it is one too many: it goes, and another is made.
            ChildKind::Pod => match apart.pods.get(name) {
                Some(pod) if pod.is_terminal() => Some((pod.uid.clone(), true)),
                _ => apart.pods.remove(name).map(|p| (p.uid.clone(), p.deleting)),
            },
        };
        let Some((uid, deleting)) = found else { continue };
        let record = ObjectRecord {
            uid,
            deleting,
            ..content
        };
        let records = apart.objects.entry(object.kind).or_default();
        records.insert(record.name.clone(), Arc::new(record));
    }
    Cow::Owned(apart)
}

/// Plans the creates, patches and deletes that bring the objects of an active job in line with what its kind says.
///
/// Of a job that waits for its turn nothing is made but the group that waits.
pub(super) fn reconcile<J: TrainingJob>(draft: &mut Draft<'_, J>, replicas: &Replicas<'_>) {
    let mut group = gang::group(draft, replicas);
    gang::tell_of_room(draft, group.as_mut());
    let mut wanted: Vec<_> = group.into_iter().collect();
    let before_its_turn = wanted.len();
    wanted.extend(render::objects(draft.job, replicas));
    for object in &wanted[..if draft.waits {
        before_its_turn
    } else {
        wanted.len()
    }] {
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
    let is_calm = draft.observed.pods.values().all(|pod| pod.is_terminal());
    let is_optional = |kind| J::FRAMEWORK.objects.iter().any(|d| d.kind == kind && d.optional);
    delete_unless(draft, |kind, name| {
        stays(kind, name) || !is_calm && !is_optional(kind)
    });
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
        let kind = ChildKind::from(*kind);
        draft
            .plan
            .delete
            .extend(goes.map(|record| deletion(kind, &record.name, &record.uid)));
    }
}
