//! What the operator should hold after each answer: the same as its caches, without their index and order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ObjectList, WatchEvent};
use kube::core::Status;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use training_job::controller::fuzzing::Key;
use training_job::plan::observed::{Observed, Phase, PodRecord};

use super::script::{Answer, Ending, Question};
use super::told::{Pod, Service};

#[derive(Default)]
pub(super) struct Model {
    jobs: Held<Job>,
    pods: Held<Pod>,
    services: Held<Service>,
    /// Pods that have succeeded and are gone, by their job's namespace and UID.
    completed: BTreeMap<Key, BTreeMap<String, u32>>,
    /// The jobs that were there and are not: of them nobody cares what has succeeded.
    gone: BTreeSet<Key>,
}

/// The objects of a kind, by namespace and name.
struct Held<K> {
    objects: BTreeMap<Key, K>,
    /// Those that the list under way has not named.
    unlisted: BTreeSet<Key>,
    /// The version that the last list or event told.
    version: String,
}

impl<K> Default for Held<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            version: String::new(),
        }
    }
}

/// Of a job, its metadata: the operator holds jobs that it cannot read.
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

/// An object that is held.
trait Object: Clone + DeserializeOwned + std::fmt::Debug {
    fn meta(&self) -> &ObjectMeta;
    /// Its name and attempt, if it is a pod that has succeeded.
    fn success(&self) -> Option<(String, u32)>;
    /// Whether it may be held.
    fn counts(&self) -> bool;
    /// The last state of `held`, whose end this tells: it is its own, under the owner that is known.
    fn last_of(self, held: Self) -> Self;
    /// Whether its deletion says nothing of `held`, which has the same name and came later.
    fn is_predecessor(&self, held: &Self) -> bool {
        self.meta().uid.as_deref().unwrap_or_default() != held.meta().uid.as_deref().unwrap_or_default()
            && version(held) > version(self)
    }
}

impl Object for Job {
    fn meta(&self) -> &ObjectMeta {
        &self.0
    }
    fn success(&self) -> Option<(String, u32)> {
        None
    }
    fn counts(&self) -> bool {
        self.0.name.is_some()
    }
    fn last_of(self, held: Self) -> Self {
        held
    }
}

impl Object for Pod {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn success(&self) -> Option<(String, u32)> {
        let record = self.record();
        (record.phase == Phase::Succeeded).then_some((record.name, record.attempt))
    }
    fn counts(&self) -> bool {
        owner(self.meta()).is_some()
    }
    fn last_of(self, held: Self) -> Self {
        if self.metadata.uid.as_deref().unwrap_or_default()
            != held.metadata.uid.as_deref().unwrap_or_default()
        {
            return held;
        }
        let mut last = self;
        last.metadata.owner_references = held.metadata.owner_references;
        last
    }
}

impl Object for Service {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn success(&self) -> Option<(String, u32)> {
        None
    }
    fn counts(&self) -> bool {
        owner(self.meta()).is_some()
    }
    fn last_of(self, held: Self) -> Self {
        held
    }
}

/// A change of what is held: what was, and what is now.
type Change<K> = (Option<K>, Option<K>);

impl<K: Object> Held<K> {
    /// Takes an answer in, and returns what changes.
    fn take(&mut self, question: &Question, answer: Option<&Answer>) -> Vec<Change<K>> {
        if question.watch {
            assert!(!self.version.is_empty(), "a watch needs a version to begin with");
            assert_eq!(question.version, self.version, "a watch goes on where it was");
        } else if !question.next_page {
            self.unlisted = self.objects.keys().cloned().collect();
        }
        match answer {
            Some(answer) if answer.code == 200 && question.watch => self.watched(answer),
            Some(answer) if answer.code == 200 && answer.ending == Ending::End => self.listed(answer),
            _ => Vec::new(),
        }
    }

    fn listed(&mut self, answer: &Answer) -> Vec<Change<K>> {
        // Of a slice, what is ignored would not be looked at.
        let text = std::str::from_utf8(&answer.body).unwrap_or_default();
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

    fn watched(&mut self, answer: &Answer) -> Vec<Change<K>> {
        let mut changes = Vec::new();
        for line in lines(answer) {
            let Ok(line) = std::str::from_utf8(line) else {
                break;
            };
            let event = match serde_json::from_str::<WatchEvent<K>>(line) {
                Ok(event) => event,
                Err(_) if line.is_empty() => continue,
                // What was cut is told again, and what comes after it is not believed.
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
                    // The server was set back: what it tells from then on is worth nothing until it is listed.
                    break;
                }
                self.version = version;
            }
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    if !self.holds_newer(&object) || !object.counts() {
                        changes.push(self.put(object));
                    }
                }
                WatchEvent::Deleted(object) => {
                    let held = self.objects.get(&key(&object));
                    if held.is_none_or(|held| !object.is_predecessor(held)) {
                        let held = self.objects.remove(&key(&object));
                        changes.push((held.map(|held| object.last_of(held)), None));
                    }
                }
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
            }
        }
        changes
    }

    fn put(&mut self, object: K) -> Change<K> {
        let key = key(&object);
        if object.counts() {
            (self.objects.insert(key, object.clone()), Some(object))
        } else {
            (self.objects.remove(&key), None)
        }
    }

    fn holds_newer(&self, object: &K) -> bool {
        let held = self.objects.get(&key(object));
        held.is_some_and(|held| version(held) > version(object))
    }
}

/// The lines of an answer as they are heard: the last one counts without its end if the answer has one.
fn lines(answer: &Answer) -> impl Iterator<Item = &[u8]> {
    let mut lines: Vec<&[u8]> = answer.body.split(|b| *b == b'\n').collect();
    if answer.ending != Ending::End || lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn key(object: &impl Object) -> Key {
    let meta = object.meta();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

fn version(object: &impl Object) -> u64 {
    number(object.meta().resource_version.as_deref().unwrap_or_default())
}

/// A version that is none comes before all others.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// The namespace and UID of the job that an object is of.
fn owner(meta: &ObjectMeta) -> Option<Key> {
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some((meta.namespace.clone()?, owner.uid.clone()))
}

impl Model {
    /// Takes an answer in.
    pub(super) fn take(&mut self, question: &Question, answer: Option<&Answer>) {
        match question.kind {
            "mxjobs" => {
                for (before, after) in self.jobs.take(question, answer) {
                    let uid = |job: &Job| job.0.uid.clone().unwrap_or_default();
                    let of = |job: &Job| (job.0.namespace.clone().unwrap_or_default(), uid(job));
                    self.gone.extend(before.as_ref().map(of));
                    self.gone.extend(after.as_ref().map(of));
                }
            }
            "pods" => {
                for (before, after) in self.pods.take(question, answer) {
                    self.keep_success(before, after.as_ref());
                }
            }
            _ => drop(self.services.take(question, answer)),
        }
    }

    /// A pod that has succeeded and makes way for none, another one, or its own under another job, is not forgotten.
    fn keep_success(&mut self, before: Option<Pod>, after: Option<&Pod>) {
        let Some(before) = before else { return };
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
        let stays =
            |after: &&Pod| uid(after) == uid(&before) && owner(&after.metadata) == owner(&before.metadata);
        if after.filter(stays).is_none()
            && let (Some(job), Some((name, attempt))) = (owner(&before.metadata), before.success())
        {
            self.completed.entry(job).or_default().insert(name, attempt);
        }
    }

    /// The UID and version of each job.
    pub(super) fn jobs(&self) -> BTreeMap<Key, (String, Option<String>)> {
        let jobs = self.jobs.objects.iter();
        let told = |job: &Job| {
            (
                job.0.uid.clone().unwrap_or_default(),
                job.0.resource_version.clone(),
            )
        };
        jobs.map(|(key, job)| (key.clone(), told(job))).collect()
    }

    /// Compares what is held of each job's children.
    pub(super) fn compare(&self, held: &BTreeMap<Key, Arc<Observed>>) {
        let mut wanted: BTreeMap<Key, Observed> = BTreeMap::new();
        for pod in self.pods.objects.values() {
            let record = pod.record();
            let job = owner(&pod.metadata).expect("others are not held");
            let pods = &mut wanted.entry(job).or_default().pods;
            pods.insert(record.name.clone(), Arc::new(record));
        }
        for service in self.services.objects.values() {
            let record = service.record();
            let job = owner(&service.metadata).expect("others are not held");
            let services = &mut wanted.entry(job).or_default().services;
            services.insert(record.name.clone(), Arc::new(record));
        }
        for (job, completed) in &self.completed {
            wanted.entry(job.clone()).or_default().completed = completed.clone();
        }
        let jobs: BTreeSet<&Key> = wanted.keys().chain(held.keys()).collect();
        for job in jobs {
            let wanted = wanted.get(job).cloned().unwrap_or_default();
            let held = held.get(job).map(|held| (**held).clone()).unwrap_or_default();
            // When a pod was seen to end is a matter of the clock.
            let without_times = |pods: &BTreeMap<String, Arc<PodRecord>>| -> BTreeMap<String, PodRecord> {
                let timeless = |pod: &PodRecord| PodRecord {
                    seen_to_end: None,
                    ..pod.clone()
                };
                pods.iter()
                    .map(|(name, pod)| (name.clone(), timeless(pod)))
                    .collect()
            };
            assert_eq!(without_times(&held.pods), without_times(&wanted.pods), "{job:?}");
            assert_eq!(held.services, wanted.services, "{job:?}");
            if !self.gone.contains(job) {
                assert_eq!(held.completed, wanted.completed, "{job:?}");
            }
        }
    }
}
