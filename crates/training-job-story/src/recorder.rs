//! Observed objects → story.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as ApiEvent, Pod};
use serde_json::Value;
use training_job::api::labels::Keys;
use training_job::api::{ConditionStatus, FailureRecord, JobCondition, JobStatus};

use crate::curve::{CURVES, Curves, Pattern};
use crate::deleted::{add_deleted_pods, times};
use crate::earlier::add_earlier_pods;
use crate::pod::PodFacts;
use crate::rendered::RenderedRole;
use crate::settings::Setting;
use crate::size;
use crate::story::{Condition, Event, Failure, Omitted, Replica, Story, VERSION, Warning};
use crate::text::{line, message};

/// The maximum number of pods that a recorder keeps. Further pods are counted.
const MAX_PODS: usize = 20_000;

/// The maximum number of events that a recorder keeps. The earliest are left out.
const MAX_EVENTS: usize = 2_000;

/// A job, and what its kind derives from it.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Job as stored.
    pub object: Value,
    /// Status of the job.
    pub status: JobStatus,
    /// Values of the spec.
    pub settings: Vec<Setting>,
    /// Objects as rendered, by role.
    pub rendered: Vec<RenderedRole>,
    /// Warnings of `validate`.
    pub warnings: Vec<Warning>,
}

/// Collects the objects of one job, each observed once or several times.
#[derive(Clone, Debug)]
pub struct Recorder {
    keys: Keys,
    pattern: Pattern,
    pods: BTreeMap<String, Recorded>,
    /// The UIDs of the latest pods by name.
    latest: BTreeMap<String, String>,
    curves: BTreeMap<(String, i32), Curves>,
    events: BTreeMap<String, Event>,
    omitted: Omitted,
}

#[derive(Clone, Debug)]
struct Recorded {
    role: String,
    index: i32,
    facts: PodFacts,
}

impl Recorder {
    /// Creates a recorder for a job, as stored, whose objects have labels with these keys.
    pub fn new(keys: Keys, job: &Value) -> Self {
        let annotation = job["metadata"]["annotations"][CURVES].as_str();
        Self {
            keys,
            pattern: annotation.map(Pattern::of_annotation).unwrap_or_default(),
            pods: BTreeMap::new(),
            latest: BTreeMap::new(),
            curves: BTreeMap::new(),
            events: BTreeMap::new(),
            omitted: Omitted::default(),
        }
    }

    /// Records a pod of the job that was observed at `now`. `gone` is true if it was deleted and this is its last state.
    pub fn pod(&mut self, pod: &Pod, gone: bool, now: Timestamp) {
        let label = |key: String| pod.metadata.labels.as_ref().and_then(|labels| labels.get(&key));
        let Some(role) = label(self.keys.replica_type()) else {
            return;
        };
        let index = label(self.keys.replica_index()).and_then(|index| index.parse().ok());
        let name = pod.metadata.name.clone().unwrap_or_default();
        let uid = pod.metadata.uid.clone().unwrap_or_else(|| name.clone());
        if !self.pods.contains_key(&uid) && self.pods.len() >= MAX_PODS {
            self.omitted.pods += 1;
            return;
        }
        self.latest.insert(name, uid.clone());
        let recorded = self.pods.entry(uid).or_insert_with(|| Recorded {
            role: line(&role.to_lowercase()),
            index: index.unwrap_or(0),
            facts: PodFacts::default(),
        });
        recorded.facts.observe(pod, gone, now);
    }

    /// Records a line of the log of the latest pod of this name.
    pub fn line(&mut self, pod: &str, text: &str, at: Option<Timestamp>) {
        let recorded = self.latest.get(pod).and_then(|uid| self.pods.get_mut(uid));
        let Some(recorded) = recorded else { return };
        recorded.facts.line(text, at);
        let replica = (recorded.role.clone(), recorded.index);
        self.curves.entry(replica).or_default().add(&self.pattern, text);
    }

    /// Records an event of the job or of one of its pods. A later state of an event replaces the earlier one.
    pub fn event(&mut self, event: &ApiEvent) {
        let of_time = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0;
        let last = event.last_timestamp.as_ref().map(of_time);
        let at = last.or(event.event_time.as_ref().map(|time| time.0));
        let object = &event.involved_object;
        let text = |text: &Option<String>| line(text.as_deref().unwrap_or_default());
        let key = event.metadata.name.clone().unwrap_or_default();
        let first = event.first_timestamp.as_ref().map(of_time);
        let event = Event {
            first_at: first.filter(|first| at.is_some_and(|at| *first < at)),
            at: at.or(first),
            type_: text(&event.type_),
            reason: text(&event.reason),
            object: line(&format!("{} {}", text(&object.kind), text(&object.name))),
            message: message(event.message.as_deref().unwrap_or_default()),
            count: event.count.unwrap_or(1),
        };
        self.events.insert(key, event);
        if self.events.len() > MAX_EVENTS {
            let earliest = self.events.iter().min_by_key(|(_, event)| event.at);
            if let Some(earliest) = earliest.map(|(key, _)| key.clone()) {
                self.events.remove(&earliest);
                self.omitted.events += 1;
            }
        }
    }

    /// Returns the story as of `now`, of at most [`MAX_BYTES`](crate::MAX_BYTES) as JSON.
    pub fn finish(&self, job: &Job, now: Timestamp) -> Story {
        let mut omitted = self.omitted;
        let mut replicas: BTreeMap<(&str, i32), Replica> = BTreeMap::new();
        for Recorded { role, index, facts } in self.pods.values() {
            let (history, runs, lines) = facts.finish();
            omitted.runs += runs;
            omitted.lines += lines;
            let replica = replicas.entry((role, *index)).or_insert_with(|| Replica {
                role: role.clone(),
                index: *index,
                pods: Vec::new(),
            });
            replica.pods.push(history);
        }
        // A replica may have no pod yet, or none any more.
        let all = job
            .rendered
            .iter()
            .flat_map(|role| (0_i32..).take(role.pods).map(|index| (role.role.as_str(), index)));
        for (role, index) in all {
            replicas.entry((role, index)).or_insert_with(|| Replica {
                role: role.to_owned(),
                index,
                pods: Vec::new(),
            });
        }
        let mut replicas: Vec<_> = replicas.into_values().collect();
        for replica in &mut replicas {
            replica.pods.sort_by_key(|pod| (pod.created_at, pod.attempt));
        }
        let mut events: Vec<_> = self.events.values().cloned().collect();
        events.sort_by_key(|event| event.at);
        let failure = job.status.failure.as_ref().map(of_failure);
        let earlier: Vec<_> = job.status.failure_history.iter().map(of_failure).collect();
        let failures: Vec<&Failure> = earlier.iter().chain(&failure).collect();
        let created = times(&events, "SuccessfulCreatePod");
        let deleted = times(&events, "SuccessfulDeletePod");
        add_earlier_pods(&mut replicas, &failures, &created);
        let metadata = &job.object["metadata"];
        let text = |value: &Value| line(value.as_str().unwrap_or_default());
        add_deleted_pods(&mut replicas, &text(&metadata["name"]), &created, &deleted);
        replicas.sort_by(|a, b| (&a.role, a.index).cmp(&(&b.role, b.index)));
        let created = metadata["creationTimestamp"]
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok());
        let first_pod = replicas
            .iter()
            .flat_map(|replica| &replica.pods)
            .filter_map(|pod| pod.created_at)
            .min();
        let curves = self
            .curves
            .iter()
            .flat_map(|((role, index), curves)| curves.finish(&format!("{role}-{index}")));
        let policy = &job.object["spec"]["runPolicy"]["backoffLimit"];
        let limit = policy
            .as_i64()
            .or_else(|| job.object["spec"]["backoffLimit"].as_i64());
        let story = Story {
            version: VERSION,
            api_version: text(&job.object["apiVersion"]),
            kind: text(&job.object["kind"]),
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            state: state(&job.status),
            observed_at: now,
            created_at: created.or(first_pod).unwrap_or(now),
            started_at: job.status.start_time.as_ref().map(|time| time.0),
            finished_at: finished_at(&job.status),
            restarts: job.status.restart_count,
            restart_limit: limit,
            failure,
            waiting_reason: line(&job.status.waiting_reason),
            progress: job
                .status
                .progress
                .as_ref()
                .map(|progress| line(&progress.summary))
                .unwrap_or_default(),
            earlier_failures: earlier,
            conditions: job.status.conditions.iter().map(of_condition).collect(),
            replicas,
            events,
            curves: curves.collect(),
            settings: job.settings.clone(),
            rendered: job.rendered.clone(),
            warnings: job.warnings.clone(),
            omitted,
            notes: Vec::new(),
        };
        size::bounded(story)
    }
}

fn state(status: &JobStatus) -> String {
    let mut holds = status
        .conditions
        .iter()
        .rev()
        .filter(|c| c.status == ConditionStatus::True);
    holds
        .next()
        .map_or_else(|| "Pending".to_owned(), |c| line(&c.type_))
}

fn finished_at(status: &JobStatus) -> Option<Timestamp> {
    let ends = status
        .conditions
        .iter()
        .filter(|c| c.status == ConditionStatus::True);
    let end = ends
        .filter(|c| matches!(&*c.type_, "Succeeded" | "Failed"))
        .find_map(|c| c.last_transition_time.as_ref());
    status.completion_time.as_ref().or(end).map(|time| time.0)
}

fn of_condition(condition: &JobCondition) -> Condition {
    let at = condition
        .last_transition_time
        .as_ref()
        .or(condition.last_update_time.as_ref());
    Condition {
        type_: line(&condition.type_),
        status: match condition.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
        .to_owned(),
        reason: line(&condition.reason),
        message: message(&condition.message),
        at: at.map(|time| time.0),
    }
}

fn of_failure(failure: &FailureRecord) -> Failure {
    let text = |text: &Option<String>| text.as_deref().map(line);
    Failure {
        summary: match failure.summary.as_str() {
            "" => line(&failure.reason),
            summary => line(summary),
        },
        reason: line(&failure.reason),
        message: message(&failure.message),
        role: failure.role.as_deref().map(|role| line(&role.to_lowercase())),
        index: failure.index,
        pod: text(&failure.pod),
        container: text(&failure.container),
        exit_code: failure.exit_code,
        signal: failure.signal,
        node: text(&failure.node),
        at: failure.time.as_ref().map(|time| time.0),
    }
}
