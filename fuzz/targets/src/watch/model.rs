//! A simpler model of the operator's caches, with their expected contents after each response.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ObjectList, WatchEvent};
use kube::core::Status;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use training_job::plan::observed::{ContainerRecord, EndOrder, Observed, Phase, PodRecord, Termination};
use training_job_controller::fuzzing::Key;

use super::objects::{Pod, Service};
use super::script::{Ending, ListOrWatch, ScriptedResponse};

#[derive(Default)]
pub(super) struct Model {
    jobs: Cache<Job>,
    pods: Cache<Pod>,
    services: Cache<Service>,
    /// The succeeded pods that were deleted, by the namespace and UID of their job.
    completed: BTreeMap<Key, BTreeMap<String, u32>>,
    /// The pods among them that were removed by others. Their success may come before or after that, depending on the
    /// order of events.
    taken_away: BTreeMap<Key, BTreeSet<String>>,
    /// The jobs that were changed or deleted. The caches may remember other successes of these jobs.
    changed_jobs: BTreeSet<Key>,
}

/// The cached objects of a resource, by namespace and name.
struct Cache<K> {
    objects: BTreeMap<Key, K>,
    /// The objects that the current list has not contained so far.
    unlisted: BTreeSet<Key>,
    /// The resource version of the last list or event.
    version: String,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            version: String::new(),
        }
    }
}

/// The metadata of a job. The operator caches jobs whose spec it cannot read.
#[derive(Clone, Debug)]
struct Job(ObjectMeta);

impl<'de> Deserialize<'de> for Job {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        let meta = object.get("metadata").cloned().unwrap_or_default();
        serde_json::from_value(meta)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// An object that can be cached.
trait Cached: Clone + DeserializeOwned + std::fmt::Debug {
    fn meta(&self) -> &ObjectMeta;
    /// Returns the name and attempt of a succeeded pod.
    fn success(&self) -> Option<(String, u32)>;
    /// Returns true if the object is cached.
    fn is_relevant(&self) -> bool;
    /// Returns the last state of the cached object after this deletion event, with the cached owner references.
    fn last_state(self, cached: Self) -> Self;
    /// Returns true if this deletion event is of an earlier object of the same name, and does not affect the cached
    /// object.
    fn is_predecessor(&self, cached: &Self) -> bool {
        self.meta().uid.as_deref().unwrap_or_default() != cached.meta().uid.as_deref().unwrap_or_default()
            && version(cached) > version(self)
    }
}

impl Cached for Job {
    fn meta(&self) -> &ObjectMeta {
        &self.0
    }
    fn success(&self) -> Option<(String, u32)> {
        None
    }
    fn is_relevant(&self) -> bool {
        self.0.name.is_some()
    }
    fn last_state(self, cached: Self) -> Self {
        cached
    }
}

impl Cached for Pod {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn success(&self) -> Option<(String, u32)> {
        let record = self.record();
        (record.phase == Phase::Succeeded).then_some((record.name, record.attempt))
    }
    fn is_relevant(&self) -> bool {
        owner(self.meta()).is_some()
    }
    fn last_state(self, cached: Self) -> Self {
        if self.metadata.uid.as_deref().unwrap_or_default()
            != cached.metadata.uid.as_deref().unwrap_or_default()
        {
            return cached;
        }
        let mut last = self;
        last.metadata.owner_references = cached.metadata.owner_references;
        last
    }
}

impl Cached for Service {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn success(&self) -> Option<(String, u32)> {
        None
    }
    fn is_relevant(&self) -> bool {
        owner(self.meta()).is_some()
    }
    fn last_state(self, cached: Self) -> Self {
        cached
    }
}

/// A change of the cache: the object before and after.
type Change<K> = (Option<K>, Option<K>);

impl<K: Cached> Cache<K> {
    /// Applies a response, and returns the changes.
    fn apply_response(
        &mut self,
        request: &ListOrWatch,
        response: Option<&ScriptedResponse>,
    ) -> Vec<Change<K>> {
        if request.watch {
            assert!(!self.version.is_empty(), "a watch needs a version to begin with");
            assert_eq!(
                request.version, self.version,
                "a watch goes on from the last version"
            );
        } else if !request.next_page {
            self.unlisted = self.objects.keys().cloned().collect();
        }
        match response {
            Some(response) if response.code == 200 && request.watch => self.apply_watch(response),
            Some(response) if response.code == 200 && response.ending == Ending::End => {
                self.apply_list(response)
            }
            _ => Vec::new(),
        }
    }

    fn apply_list(&mut self, response: &ScriptedResponse) -> Vec<Change<K>> {
        // `from_slice` would not check ignored strings.
        let text = std::str::from_utf8(&response.body).unwrap_or_default();
        let Ok(list) = serde_json::from_str::<ObjectList<K>>(text) else {
            return Vec::new();
        };
        let mut changes = Vec::new();
        for object in list.items {
            self.unlisted.remove(&key(&object));
            changes.push(self.put(object));
        }
        let is_set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if is_set(&list.metadata.continue_) || !is_set(&list.metadata.resource_version) {
            return changes;
        }
        self.version = list.metadata.resource_version.unwrap_or_default();
        for key in std::mem::take(&mut self.unlisted) {
            changes.push((self.objects.remove(&key), None));
        }
        changes
    }

    fn apply_watch(&mut self, response: &ScriptedResponse) -> Vec<Change<K>> {
        let mut changes = Vec::new();
        for line in lines(response) {
            let Ok(line) = std::str::from_utf8(line) else {
                break;
            };
            let event = match serde_json::from_str::<WatchEvent<K>>(line) {
                Ok(event) => event,
                Err(_) if line.is_empty() => continue,
                // The operator watches again from the version before a broken line, and ignores what follows the
                // line.
                Err(_) => break,
            };
            let version = match &event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    object.meta().resource_version.clone().unwrap_or_default()
                }
                WatchEvent::Bookmark(mark) => mark.metadata.resource_version.clone(),
                WatchEvent::Error(status) => {
                    let _: &Status = status;
                    break;
                }
            };
            if !version.is_empty() {
                if number(&version) < number(&self.version) {
                    // The server was restored from a backup. The operator ignores its events until the next list.
                    break;
                }
                self.version = version;
            }
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    if !self.has_newer(&object) || !object.is_relevant() {
                        changes.push(self.put(object));
                    }
                }
                WatchEvent::Deleted(object) => {
                    let cached = self.objects.get(&key(&object));
                    if cached.is_none_or(|cached| !object.is_predecessor(cached)) {
                        let cached = self.objects.remove(&key(&object));
                        changes.push((cached.map(|cached| object.last_state(cached)), None));
                    }
                }
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
            }
        }
        changes
    }

    fn put(&mut self, object: K) -> Change<K> {
        let key = key(&object);
        if object.is_relevant() {
            (self.objects.insert(key, object.clone()), Some(object))
        } else {
            (self.objects.remove(&key), None)
        }
    }

    fn has_newer(&self, object: &K) -> bool {
        let cached = self.objects.get(&key(object));
        cached.is_some_and(|cached| version(cached) > version(object))
    }
}

/// Returns the lines of a response that the operator reads. The last line needs no line break if the response is
/// complete.
fn lines(response: &ScriptedResponse) -> impl Iterator<Item = &[u8]> {
    let mut lines: Vec<&[u8]> = response.body.split(|b| *b == b'\n').collect();
    if response.ending != Ending::End || lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn key(object: &impl Cached) -> Key {
    let meta = object.meta();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

fn version(object: &impl Cached) -> u64 {
    number(object.meta().resource_version.as_deref().unwrap_or_default())
}

/// Parses a version. An invalid version comes before all others.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// Returns the namespace and UID of the job that controls an object.
fn owner(meta: &ObjectMeta) -> Option<Key> {
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some((meta.namespace.clone()?, owner.uid.clone()))
}

impl Model {
    pub(super) fn apply_response(&mut self, request: &ListOrWatch, response: Option<&ScriptedResponse>) {
        match request.resource {
            "mxjobs" => {
                for (before, after) in self.jobs.apply_response(request, response) {
                    let uid = |job: &Job| job.0.uid.clone().unwrap_or_default();
                    let key = |job: &Job| (job.0.namespace.clone().unwrap_or_default(), uid(job));
                    self.changed_jobs.extend(before.as_ref().map(key));
                    self.changed_jobs.extend(after.as_ref().map(key));
                }
            }
            "pods" => {
                for (before, after) in self.pods.apply_response(request, response) {
                    self.keep_success(before, after.as_ref());
                }
            }
            _ => drop(self.services.apply_response(request, response)),
        }
    }

    /// Records a succeeded pod that is deleted, replaced by another pod, or given to another job.
    fn keep_success(&mut self, before: Option<Pod>, after: Option<&Pod>) {
        let Some(before) = before else { return };
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
        let stays =
            |after: &&Pod| uid(after) == uid(&before) && owner(&after.metadata) == owner(&before.metadata);
        if after.filter(stays).is_none()
            && let (Some(job), Some((name, attempt))) = (owner(&before.metadata), before.success())
        {
            let record = before.record();
            if record.deleting || record.disruption.is_some() {
                self.taken_away
                    .entry(job.clone())
                    .or_default()
                    .insert(name.clone());
            }
            self.completed.entry(job).or_default().insert(name, attempt);
        }
    }

    /// Returns the UID and version of each job.
    pub(super) fn jobs(&self) -> BTreeMap<Key, (String, Option<String>)> {
        let jobs = self.jobs.objects.iter();
        let uid_and_version = |job: &Job| {
            (
                job.0.uid.clone().unwrap_or_default(),
                job.0.resource_version.clone(),
            )
        };
        jobs.map(|(key, job)| (key.clone(), uid_and_version(job)))
            .collect()
    }

    /// Asserts that the operator's caches hold these children of each job.
    pub(super) fn assert_children(&self, cached: &BTreeMap<Key, Arc<Observed>>) {
        let mut wanted: BTreeMap<Key, Observed> = BTreeMap::new();
        for pod in self.pods.objects.values() {
            let record = pod.record();
            let job = owner(&pod.metadata).expect("only objects with a controller are cached");
            let pods = &mut wanted.entry(job).or_default().pods;
            pods.insert(record.name.clone(), Arc::new(record));
        }
        for service in self.services.objects.values() {
            let record = service.record();
            let job = owner(&service.metadata).expect("only objects with a controller are cached");
            let services = &mut wanted.entry(job).or_default().services;
            services.insert(record.name.clone(), Arc::new(record));
        }
        let jobs = wanted.keys().chain(cached.keys()).chain(self.completed.keys());
        let jobs: BTreeSet<&Key> = jobs.collect();
        for job in jobs {
            let wanted = wanted.get(job).cloned().unwrap_or_default();
            let cached = cached
                .get(job)
                .map(|cached| (**cached).clone())
                .unwrap_or_default();
            // The observed end of a pod depends on the clock, and `order` on the order of events.
            let without_times = |pods: &BTreeMap<String, Arc<PodRecord>>| -> BTreeMap<String, PodRecord> {
                let timeless = |pod: &PodRecord| PodRecord {
                    seen_to_end: None,
                    order: EndOrder::default(),
                    restart_policy: None,
                    containers: pod.containers.iter().map(without_order).collect(),
                    ..pod.clone()
                };
                pods.iter()
                    .map(|(name, pod)| (name.clone(), timeless(pod)))
                    .collect()
            };
            assert_eq!(
                without_times(&cached.pods),
                without_times(&wanted.pods),
                "{job:?}"
            );
            assert_eq!(cached.services, wanted.services, "{job:?}");
            if !self.changed_jobs.contains(job) {
                let is_sure =
                    |name: &String| !self.taken_away.get(job).is_some_and(|names| names.contains(name));
                let removed = cached.removed.values();
                let succeeded = removed.filter(|pod| pod.phase == Phase::Succeeded && is_sure(&pod.name));
                let found: BTreeMap<&str, u32> =
                    succeeded.map(|pod| (pod.name.as_str(), pod.attempt)).collect();
                let completed = self.completed.get(job).into_iter().flatten();
                let completed = completed.filter(|(name, _)| is_sure(name));
                let wanted = completed
                    .map(|(name, attempt)| (name.as_str(), *attempt))
                    .collect();
                assert_eq!(found, wanted, "{job:?}");
            }
        }
    }
}

/// Returns the record without what depends on the order of events.
fn without_order(container: &ContainerRecord) -> ContainerRecord {
    let ended = container.ended.clone();
    ContainerRecord {
        ended: ended.map(|end| Termination {
            order: EndOrder::default(),
            ..end
        }),
        ..container.clone()
    }
}
