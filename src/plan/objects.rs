//! The objects of a job other than the services and pods of its replicas.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;

use crate::api::JobStatus;
use crate::job::{JobObject, ObjectDefinition, ObjectKind, ReplicaState, Replicas, SharedEnvironment};
use crate::render;
use crate::validate::ValidJob;

use super::facts::Facts;
use super::gang;
use super::observed::{ObjectRecord, Observed};
use super::survey::{Survey, states};
use super::types::{ChildKind, Dangling, Deletion, ObjectPatch, Plan};

impl ValidJob<'_> {
    /// Lets the hooks that make pods read the observed objects that are created once, by
    /// [`Topology::content`](crate::Topology::content).
    pub fn read_contents(&mut self, observed: &Observed) {
        let definitions = self.job.framework().objects.iter();
        let readable = definitions.filter(|d| d.created_once && d.kind != ObjectKind::of::<Secret>());
        for kind in readable.map(|d| d.kind) {
            let records = observed.objects.get(&kind).into_iter().flatten();
            let contents = records.map(|(name, record)| ((kind, name.clone()), record.content.clone()));
            self.topology.contents.extend(contents);
        }
    }
}

/// Returns the observed children with the pods and services that the kind declares as objects moved to the objects.
/// Of these only the existence is observed, so their content counts as up to date.
pub(super) fn without_job_objects<'o>(job: &ValidJob<'_>, observed: &'o Observed) -> Cow<'o, Observed> {
    let is_object = |d: &ObjectDefinition| matches!(d.kind.into(), ChildKind::Object(_));
    if job.job.framework().objects.iter().all(is_object) {
        return Cow::Borrowed(observed);
    }
    let absent = Replicas::new(&job.topology, |_, _| ReplicaState::Absent);
    let mut apart = observed.clone();
    for object in render::objects(job, &absent) {
        let (name, content) = (object.name(), ObjectRecord::from(&object));
        let found = match object.kind.into() {
            ChildKind::Object(_) => None,
            ChildKind::Service => apart.services.remove(name).map(|s| (s.uid.clone(), s.deleting)),
            // An ended pod also stays among the pods. It is surplus there and is deleted, and then a new one is
            // created.
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

/// Plans the creates, patches and deletes that bring the objects of an active job in line with the wanted ones.
/// Also returns true if services and pods may be created in this plan, because no object waits for another one.
///
/// For a job that waits in the queue of a gang scheduler, only the PodGroup is created.
pub(super) fn reconcile(facts: &Facts<'_>, survey: &Survey<'_>) -> (Plan, bool) {
    let (job, observed) = (facts.job, facts.observed);
    let (mut plan, nudge) = gang::nudge_scheduler(facts);
    let mut wanted: Vec<_> = gang::group(facts, survey, nudge).into_iter().collect();
    let before_its_turn = wanted.len();
    wanted.extend(render::objects(job, &survey.states));
    let count = wanted.len();
    let dangling = remove_without_referents(facts, &mut wanted);
    // The pods may depend on what a copy contains.
    let is_uncopied = |object: &JobObject| {
        let is_optional = || job.job.framework().declares(object.kind, |d| d.optional);
        object.original().is_some() && !is_optional() && record_of(observed, object).is_none()
    };
    let has_all = dangling.is_empty() && !wanted.iter().any(is_uncopied);
    let due = match survey.waits {
        true => before_its_turn.min(wanted.len()),
        false => count - dangling.len(),
    };
    let missing = wanted[..due].iter().filter(|o| record_of(observed, o).is_none());
    plan.create_objects = missing.cloned().collect();
    plan.patch_objects = patches(facts, wanted.iter());
    plan.delete = delete_unless(observed, |kind, name| {
        // Pods created before a change of the number of replicas refer to the shared object of that time.
        let wanted = wanted.iter().chain(dangling.iter().map(|(object, _)| object));
        wanted.into_iter().any(|o| o.kind == kind && o.name() == name)
            || SharedEnvironment::is_owned_name(&job.topology, kind, name)
    });
    for (object, referents) in dangling {
        let record = record_of(observed, &object);
        if let Some(record) = record.filter(|record| !record.deleting) {
            let deletion = Deletion::new(object.kind.into(), &record.name, &record.uid);
            match survey.waits {
                // Nothing is created now, so it is not known whether the referents can be created.
                true => plan.delete.push(deletion),
                false => plan.dangling.push(Dangling { deletion, referents }),
            }
        }
    }
    (plan, has_all)
}

/// Removes from `wanted` the objects that refer to a missing object, and returns each with its missing referents.
/// Otherwise they would refer to an object of another owner under that name, such as a Role that the job does not
/// control.
fn remove_without_referents(
    facts: &Facts<'_>,
    wanted: &mut Vec<JobObject>,
) -> Vec<(JobObject, Vec<(ChildKind, String)>)> {
    let is_there = |o: &JobObject| record_of(facts.observed, o).is_some_and(|record| !record.deleting);
    let missing = wanted.iter().filter(|object| !is_there(object));
    let missing: Vec<_> = missing
        .map(|object| (object.kind, object.name().to_owned()))
        .collect();
    let referents = |object: &JobObject| -> Vec<(ChildKind, String)> {
        let definitions = facts.job.job.framework().objects.iter();
        let definitions = definitions.filter(|d| d.kind == object.kind);
        let kinds: Vec<ObjectKind> = definitions.flat_map(|d| d.refers_to).copied().collect();
        let missing = missing.iter().filter(|(kind, _)| kinds.contains(kind));
        missing
            .map(|(kind, name)| (ChildKind::from(*kind), name.clone()))
            .collect()
    };
    let (whole, dangling): (Vec<_>, Vec<_>) = std::mem::take(wanted)
        .into_iter()
        .map(|object| (referents(&object), object))
        .partition(|(missing, _)| missing.is_empty());
    wanted.extend(whole.into_iter().map(|(_, object)| object));
    dangling
        .into_iter()
        .map(|(missing, object)| (object, missing))
        .collect()
}

/// Returns the observed object with the kind and name of `object`.
fn record_of<'o>(observed: &'o Observed, object: &JobObject) -> Option<&'o Arc<ObjectRecord>> {
    observed.objects.get(&object.kind)?.get(object.name())
}

/// Plans the patches and deletes of objects of a suspended or finished job. Nothing is created. Objects that stay are
/// brought up to date. Other objects are deleted once no pod runs, or immediately if their kind is optional.
pub(super) fn end(facts: &Facts<'_>, status: &JobStatus) -> Plan {
    let (job, observed) = (facts.job, facts.observed);
    if observed.objects.values().all(|records| records.is_empty()) {
        return Plan::default();
    }
    let topology = &job.topology;
    let framework = job.job.framework();
    let stays = |kind, name: &str| match SharedEnvironment::is_owned_name(topology, kind, name) {
        true => !SharedEnvironment::OBJECT.while_active,
        false => framework.declares(kind, |d| !d.while_active),
    };
    let mut wanted = render::objects(job, &states(job, status, observed));
    let all: Vec<_> = wanted.iter().map(|o| (o.kind, o.name().to_owned())).collect();
    remove_without_referents(facts, &mut wanted);
    let lacks_referents = |kind, name: &str| {
        let is_this = |o: &JobObject| o.kind == kind && o.name() == name;
        all.iter().any(|(k, n)| *k == kind && n == name) && !wanted.iter().any(is_this)
    };
    let is_calm = observed.pods.values().all(|pod| pod.is_terminal());
    let is_optional = |kind| framework.declares(kind, |d| d.optional);
    let is_kept = |kind, name: &str| stays(kind, name) || !is_calm && !is_optional(kind);
    Plan {
        patch_objects: patches(facts, wanted.iter().filter(|o| is_kept(o.kind, o.name()))),
        delete: delete_unless(observed, |kind, name| {
            is_kept(kind, name) && !lacks_referents(kind, name)
        }),
        ..Plan::default()
    }
}

/// Returns the patches of the existing objects that differ from the wanted ones.
fn patches<'o>(facts: &Facts<'_>, wanted: impl Iterator<Item = &'o JobObject>) -> Vec<ObjectPatch> {
    // The shared object never changes, because its name depends on its content.
    let is_shared = |object: &JobObject| {
        SharedEnvironment::is_owned_name(&facts.job.topology, object.kind, object.name())
    };
    let patch = |object: &JobObject| {
        let record = record_of(facts.observed, object)?;
        (!record.deleting && !record.satisfies(object)).then(|| ObjectPatch {
            object: object.clone(),
            uid: record.uid.clone(),
        })
    };
    let framework = facts.job.job.framework();
    let is_created_once = |object: &JobObject| framework.declares(object.kind, |d| d.created_once);
    wanted
        .filter(|object| !is_shared(object) && !is_created_once(object))
        .filter_map(patch)
        .collect()
}

fn delete_unless(observed: &Observed, stays: impl Fn(ObjectKind, &str) -> bool) -> Vec<Deletion> {
    let mut delete = Vec::new();
    for (kind, records) in &observed.objects {
        let goes = records.values().filter(|r| !r.deleting && !stays(*kind, &r.name));
        let kind = ChildKind::from(*kind);
        delete.extend(goes.map(|record| Deletion::new(kind, &record.name, &record.uid)));
    }
    delete
}
