//! What the cluster holds of a job, kept small: the input of the plan.
//!
//! A record has what the plan reads and nothing else, under 1 KB where a pod has 30.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::api::labels;
use crate::job::{JobObject, ObjectKind};

use super::types::{ChildKind, Deletion, Plan};

/// The most bytes of a message that are kept.
pub const MAX_MESSAGE: usize = 2_048;

/// Why a pod is not scheduled for which there is no node, and why Volcano does not let a group in.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";

/// Why a pod is not scheduled that is held back on purpose.
pub(crate) const GATED: &str = "SchedulingGated";

/// The conditions that each pod has; what they say its phase says as well.
const COMMON_CONDITIONS: [&str; 5] = [
    "PodReadyToStartContainers",
    "PodScheduled",
    "Initialized",
    "ContainersReady",
    "Ready",
];

/// What a job controls, by name.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its pods.
    pub pods: BTreeMap<String, Arc<PodRecord>>,
    /// Its services.
    pub services: BTreeMap<String, Arc<ServiceRecord>>,
    /// What else it controls, by kind.
    pub objects: BTreeMap<ObjectKind, BTreeMap<String, Arc<ObjectRecord>>>,
    /// Pods that ended well and were then deleted by somebody else: name and attempt.
    pub completed: BTreeMap<String, u32>,
    /// When a pod of any job last left room, if gangs have to be told of it.
    pub room_left_at: Option<Timestamp>,
}

impl Observed {
    /// What a cluster holds that has carried out a plan at once. What is new has no UID and no status.
    pub fn carry_out(&mut self, plan: &Plan) {
        let created = plan.create_objects.iter().map(|object| (object, ""));
        let patched = plan
            .patch_objects
            .iter()
            .map(|patch| (&patch.object, &*patch.uid));
        for (object, uid) in created.chain(patched) {
            let name = object.name().to_owned();
            match object.kind.into() {
                ChildKind::Pod => {
                    let record = PodRecord {
                        name: name.clone(),
                        ..PodRecord::default()
                    };
                    self.pods.insert(name, Arc::new(record));
                }
                ChildKind::Service => {
                    let record = ServiceRecord {
                        name: name.clone(),
                        ..ServiceRecord::default()
                    };
                    self.services.insert(name, Arc::new(record));
                }
                ChildKind::Object(kind) => {
                    let record = ObjectRecord {
                        uid: uid.to_owned(),
                        ..object.into()
                    };
                    let objects = self.objects.entry(kind).or_default();
                    objects.insert(name, Arc::new(record));
                }
            }
        }
        for service in &plan.create_services {
            let record = ServiceRecord::from(service);
            self.services.insert(record.name.clone(), Arc::new(record));
        }
        for pod in &plan.create_pods {
            let record = PodRecord {
                name: pod.name.clone(),
                attempt: pod.attempt,
                ..PodRecord::default()
            };
            self.pods.insert(record.name.clone(), Arc::new(record));
        }
        for Deletion { kind, name, .. } in &plan.delete {
            match kind {
                ChildKind::Pod => drop(self.pods.remove(name)),
                ChildKind::Service => drop(self.services.remove(name)),
                ChildKind::Object(kind) => drop(self.objects.entry(*kind).or_default().remove(name)),
            }
        }
    }
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRecord {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// How many restarts its replica had had when it was made.
    pub attempt: u32,
    /// Its phase.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether the cluster took it away: evicted, preempted, its node lost.
    pub disrupted: bool,
    /// Its conditions, type and status, but for those that each pod has.
    pub conditions: Vec<(String, String)>,
    /// The pod's own reason.
    pub reason: Option<String>,
    /// The pod's own message.
    pub message: Option<String>,
    /// Whether a scheduler has found a node for it.
    pub scheduled: bool,
    /// Why no node takes it: reason and message.
    pub unscheduled: Option<(String, String)>,
    /// Since when.
    pub unscheduled_since: Option<Timestamp>,
    /// When the controller saw it end; unset if it had ended when the controller first saw it.
    pub seen_to_end: Option<Timestamp>,
    /// Its init containers, then its containers.
    pub containers: Vec<ContainerRecord>,
}

/// The phase of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended with exit code 0.
    Succeeded,
    /// All containers ended, one of them badly, or the pod was taken away.
    Failed,
    /// Its node does not answer.
    Unknown,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecord {
    /// Its name.
    pub name: String,
    /// Whether it is an init container: it says nothing of the replica's part in the job.
    pub init: bool,
    /// How often the kubelet restarted it.
    pub restarts: i32,
    /// How it ended, if it has ended and has not been restarted.
    pub ended: Option<Termination>,
    /// How it ended before its latest restart.
    pub last: Option<Termination>,
    /// Why it waits: reason and message.
    pub waiting: Option<(String, String)>,
}

/// The end of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// Its exit code.
    pub exit_code: i32,
    /// The signal that ended it, where known.
    pub signal: Option<i32>,
    /// Why, in one word.
    pub reason: Option<String>,
    /// Its message; at most [`MAX_MESSAGE`] bytes.
    pub message: Option<String>,
    /// When.
    pub finished_at: Option<Timestamp>,
}

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// An object that is neither pod nor service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectRecord {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// When it was made, if the API server has said so.
    pub created: Option<Timestamp>,
    /// What it has beside `apiVersion`, `kind` and `metadata`.
    pub content: Value,
}

impl PodRecord {
    /// How often the kubelet restarted the pod's containers, all together.
    pub fn restarts(&self) -> i32 {
        self.containers
            .iter()
            .map(|c| c.restarts)
            .fold(0, i32::saturating_add)
    }

    /// Why the pod has not started, as far as the cluster says: reason and message.
    pub fn waits_for(&self) -> Option<&(String, String)> {
        let waiting = self.containers.iter().find_map(|c| c.waiting.as_ref());
        self.unscheduled.as_ref().or(waiting)
    }

    /// Since when no node takes the pod, unless it is gated: then it waits for its turn, as it is meant to.
    pub(crate) fn has_no_node_since(&self) -> Option<Timestamp> {
        let (reason, _) = self.unscheduled.as_ref()?;
        self.unscheduled_since.filter(|_| reason != GATED)
    }

    /// Whether the pod has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }
}

impl From<&Pod> for PodRecord {
    fn from(pod: &Pod) -> Self {
        Self::of(&pod.metadata, pod.status.as_ref())
    }
}

impl PodRecord {
    /// What is kept of a pod with this metadata and status.
    pub(crate) fn of(meta: &ObjectMeta, status: Option<&PodStatus>) -> Self {
        let none = PodStatus::default();
        let status = status.unwrap_or(&none);
        let annotations = meta.annotations.as_ref();
        let attempt = annotations.and_then(|a| a.get(labels::RESTART_ATTEMPT));
        let is = |condition: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|c| c.type_ == condition && c.status == "True")
        };
        let disruption_target = is("DisruptionTarget");
        let conditions = status.conditions.iter().flatten();
        let conditions = conditions.filter(|c| !COMMON_CONDITIONS.contains(&&*c.type_));
        let conditions = conditions.map(|c| (c.type_.clone(), c.status.clone())).collect();
        let reason = status.reason.clone().filter(|r| !r.is_empty());
        let taken_away = matches!(
            reason.as_deref(),
            Some(
                "Evicted"
                    | "Preempting"
                    | "Preempted"
                    | "NodeLost"
                    | "NodeAffinity"
                    | "NodeShutdown"
                    | "Shutdown"
                    | "Terminated"
            )
        );
        let mut all = status.conditions.iter().flatten();
        let waits = all.find(|c| c.type_ == "PodScheduled" && c.status == "False");
        let unscheduled =
            waits.and_then(|c| Some((c.reason.clone()?, cut(c.message.clone().unwrap_or_default()))));
        let init = status.init_container_statuses.iter().flatten();
        let init = init.map(|c| ContainerRecord {
            init: true,
            ..c.into()
        });
        let main = status
            .container_statuses
            .iter()
            .flatten()
            .map(ContainerRecord::from);
        let mut containers: Vec<ContainerRecord> = init.chain(main).collect();
        // Most pods have one, and there are many pods.
        containers.shrink_to_fit();
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            attempt: attempt.and_then(|a| a.parse().ok()).unwrap_or(0),
            phase: match status.phase.as_deref() {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Unknown") => Phase::Unknown,
                _ => Phase::Pending,
            },
            deleting: meta.deletion_timestamp.is_some(),
            disrupted: disruption_target || taken_away,
            conditions,
            reason,
            message: status.message.clone().filter(|m| !m.is_empty()).map(cut),
            scheduled: is("PodScheduled"),
            unscheduled_since: waits
                .and_then(|c| c.last_transition_time.as_ref())
                .map(|time| time.0),
            unscheduled,
            seen_to_end: None,
            containers,
        }
    }
}

impl From<&ContainerStatus> for ContainerRecord {
    fn from(status: &ContainerStatus) -> Self {
        let state = status.state.as_ref();
        let waiting = state.and_then(|s| s.waiting.as_ref());
        let last = status.last_state.as_ref();
        Self {
            name: status.name.clone(),
            init: false,
            restarts: status.restart_count.max(0),
            ended: state.and_then(|s| s.terminated.as_ref()).map(Termination::from),
            last: last.and_then(|s| s.terminated.as_ref()).map(Termination::from),
            waiting: waiting
                .and_then(|w| Some((w.reason.clone()?, cut(w.message.clone().unwrap_or_default())))),
        }
    }
}

impl From<&ContainerStateTerminated> for Termination {
    fn from(state: &ContainerStateTerminated) -> Self {
        Self {
            exit_code: state.exit_code,
            signal: state.signal.filter(|s| *s != 0),
            reason: state.reason.clone().filter(|r| !r.is_empty()),
            message: state.message.clone().filter(|m| !m.is_empty()).map(cut),
            finished_at: state.finished_at.as_ref().map(|t| t.0),
        }
    }
}

impl From<&Service> for ServiceRecord {
    fn from(service: &Service) -> Self {
        Self::of(&service.metadata)
    }
}

impl ServiceRecord {
    /// What is kept of a service with this metadata.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
        }
    }
}

impl From<&JobObject> for ObjectRecord {
    fn from(object: &JobObject) -> Self {
        Self::of(&object.metadata, &object.content)
    }
}

impl ObjectRecord {
    /// What is kept of an object with this metadata and content.
    pub(crate) fn of(meta: &ObjectMeta, content: &Value) -> Self {
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: meta.annotations.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            content: content.clone(),
        }
    }

    /// Whether it has everything that `wanted` says. It may have more: what the server fills in, and what others add.
    pub(crate) fn satisfies(&self, wanted: &JobObject) -> bool {
        let has = |stored: &BTreeMap<String, String>, wanted: &Option<BTreeMap<String, String>>| {
            wanted.iter().flatten().all(|(k, v)| stored.get(k) == Some(v))
        };
        has(&self.labels, &wanted.metadata.labels)
            && has(&self.annotations, &wanted.metadata.annotations)
            && contains(&self.content, &wanted.content)
    }
}

/// Whether a stored value has everything that `wanted` has: a map its members, a list as many entries, each with
/// everything that the wanted one has.
fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            stored
                .get(name)
                .map_or_else(|| is_nothing(wanted), |stored| contains(stored, wanted))
        }),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(s, w)| contains(s, w))
        }
        (stored, wanted) => stored == wanted,
    }
}

/// Whether a server may leave the value out: nothing is lost by it.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The end of a message that has at most `bound` bytes: its last words say most.
pub(crate) fn last_words(message: String, bound: usize) -> String {
    let mut from = message.len().saturating_sub(bound);
    while !message.is_char_boundary(from) {
        from += 1;
    }
    if from == 0 {
        message
    } else {
        message[from..].to_owned()
    }
}

fn cut(message: String) -> String {
    last_words(message, MAX_MESSAGE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is kept of a pod with this status.
    fn pod(status: &Value) -> PodRecord {
        let pod = json!({"metadata": {}, "status": status});
        PodRecord::from(&serde_json::from_value::<Pod>(pod).unwrap())
    }

    #[test]
    fn a_pod_is_unscheduled_if_that_is_what_a_condition_says() {
        let waits = |type_: &str, status: &str| {
            let condition = json!({"type": type_, "status": status, "reason": "Why", "message": "m"});
            pod(&json!({"conditions": [condition]})).unscheduled
        };
        assert_eq!(waits("PodScheduled", "False"), Some(("Why".into(), "m".into())));
        assert_eq!(waits("PodScheduled", "True"), None);
        assert_eq!(waits("Ready", "False"), None);
    }

    #[test]
    fn what_the_kubelet_says_is_kept_and_what_says_nothing_is_not() {
        let phases = [
            ("Pending", Phase::Pending),
            ("Running", Phase::Running),
            ("Succeeded", Phase::Succeeded),
            ("Failed", Phase::Failed),
            ("Unknown", Phase::Unknown),
            ("Dreaming", Phase::Pending),
        ];
        for (text, phase) in phases {
            assert_eq!(pod(&json!({"phase": text})).phase, phase, "{text}");
        }
        let end = |signal: i32, text: &str| {
            let end = json!({"exitCode": 3, "signal": signal, "reason": text, "message": text});
            let container = json!({"name": "c", "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": {"terminated": end}});
            let pod = pod(&json!({"containerStatuses": [container]}));
            pod.containers[0].ended.clone().unwrap()
        };
        let termination = Termination {
            exit_code: 3,
            signal: Some(9),
            reason: Some("why".to_owned()),
            message: Some("why".to_owned()),
            finished_at: None,
        };
        assert_eq!(end(9, "why"), termination);
        let silent = Termination {
            exit_code: 3,
            ..Termination::default()
        };
        assert_eq!(end(0, ""), silent);
    }

    #[test]
    fn long_messages_lose_their_beginning_between_characters() {
        let message = cut("é".repeat(MAX_MESSAGE));
        assert_eq!(
            (message.len(), message.chars().all(|c| c == 'é')),
            (MAX_MESSAGE, true)
        );
        assert_eq!(cut("short".into()), "short");
    }
}
