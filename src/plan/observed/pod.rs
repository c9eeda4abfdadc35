//! Compact records of pods and their containers.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{is_writable, labels};
use crate::plan::printable::printable;

/// The maximum size of a stored message, in bytes.
pub const MAX_MESSAGE: usize = 2_048;

/// The reason of an unscheduled pod for which there is no node, and of a group that Volcano does not admit.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";

/// The reason of an unscheduled pod that is held back by scheduling gates.
pub(crate) const GATED: &str = "SchedulingGated";

/// The condition of a pod that is the target of a disruption.
pub(crate) const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// The conditions that every pod has. They are left out of the record's conditions, because the phase and
/// [`PodRecord::ready`] have the same information.
const COMMON_CONDITIONS: [&str; 5] = [
    "PodReadyToStartContainers",
    "PodScheduled",
    "Initialized",
    "ContainersReady",
    "Ready",
];

/// The record of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRecord {
    /// The name of the pod.
    pub name: String,
    /// The UID of the pod.
    pub uid: String,
    /// The number of restarts of its replica before the pod was created.
    pub attempt: u32,
    /// The phase of the pod.
    pub phase: Phase,
    /// True if the pod runs and is ready.
    pub ready: bool,
    /// True if the pod is being deleted.
    pub deleting: bool,
    /// The times when its deletion was requested and is due, as the API server reports them; unset if it reports
    /// none.
    pub deletion: Option<DeletionTimes>,
    /// The finalizers that hold the pod, if it is being deleted.
    pub finalizers: Box<[String]>,
    /// True if the cluster evicts or preempts the pod, or its node was lost.
    pub disrupted: bool,
    /// The condition `DisruptionTarget`, if it is True.
    pub disruption: Option<Box<Disruption>>,
    /// True if the controller observed the end of the pod before it observed its deletion or disruption. Then the
    /// times in the pod are not compared, because the clocks of nodes and API server may differ.
    pub ended_first: bool,
    /// The node of the pod; unset while the pod runs and is neither deleted nor disrupted.
    pub node: Option<String>,
    /// The type and status of its conditions, except those that every pod has.
    pub conditions: Vec<(String, String)>,
    /// The reason in the pod's status.
    pub reason: Option<String>,
    /// The message in the pod's status.
    pub message: Option<String>,
    /// True if a scheduler has found a node for the pod.
    pub scheduled: bool,
    /// The time when the scheduler found the node, if the pod has not started since.
    pub scheduled_at: Option<Timestamp>,
    /// The time of its creation, if the pod has not started and no scheduler has found a node for it.
    pub without_node_since: Option<Timestamp>,
    /// The reason and message why the pod has no node.
    pub unscheduled: Option<(String, String)>,
    /// The time since when the pod has been unscheduled for that reason.
    pub unscheduled_since: Option<Timestamp>,
    /// The time when the controller last observed the end of a container or of the pod; unset if they had ended when
    /// the controller first observed the pod.
    pub seen_to_end: Option<Timestamp>,
    /// The init containers of the pod, then its containers.
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
    /// All containers ended, at least one with an error, or the cluster ended the pod.
    Failed,
    /// The node of the pod does not respond.
    Unknown,
}

/// The times when a pod's deletion was requested, and when its grace period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionTimes {
    /// `deletionTimestamp` less `deletionGracePeriodSeconds`.
    pub requested: Timestamp,
    /// `deletionTimestamp`.
    pub due: Timestamp,
}

/// The condition `DisruptionTarget` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disruption {
    /// The cause of the disruption in one word, such as `EvictionByEvictionAPI`.
    pub reason: String,
    /// The cause in a sentence; at most [`MAX_MESSAGE`] bytes.
    pub message: String,
    /// The time since when the condition has been True.
    pub time: Option<Timestamp>,
}

/// The kind of a container in a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerKind {
    /// One of `containers`.
    #[default]
    Regular,
    /// An init container that must end before the others start.
    Init,
    /// An init container that runs beside the others, having `restartPolicy: Always`.
    Sidecar,
}

/// The record of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRecord {
    /// The name of the container.
    pub name: String,
    /// The kind of the container.
    pub kind: ContainerKind,
    /// The number of restarts by the kubelet.
    pub restarts: i32,
    /// The end of the container, if it has ended and has not been restarted.
    pub ended: Option<Termination>,
    /// The end of the container before its latest restart.
    pub last: Option<Termination>,
    /// The reason and message why the container waits.
    pub waiting: Option<(String, String)>,
}

/// The end of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Termination {
    /// The exit code of the container.
    pub exit_code: i32,
    /// The signal that ended the container, if known.
    pub signal: Option<i32>,
    /// The reason, in one word.
    pub reason: Option<String>,
    /// The message; at most [`MAX_MESSAGE`] bytes.
    pub message: Option<String>,
    /// The start time.
    pub started_at: Option<Timestamp>,
    /// The end time.
    pub finished_at: Option<Timestamp>,
}

impl PodRecord {
    /// Returns why the pod has not started, as far as the cluster reports it: reason and message.
    pub fn waits_for(&self) -> Option<&(String, String)> {
        let waiting = self.containers.iter().find_map(|c| c.waiting.as_ref());
        self.unscheduled.as_ref().or(waiting)
    }

    /// Returns the time since when the pod has had no node. Returns None for a gated pod, because it is held back on
    /// purpose.
    pub(crate) fn has_no_node_since(&self) -> Option<Timestamp> {
        let (reason, _) = self.unscheduled.as_ref()?;
        self.unscheduled_since.filter(|_| reason != GATED)
    }

    /// Returns true if the pod has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns true if the pod is being deleted or disrupted.
    pub fn is_going(&self) -> bool {
        self.deleting || self.disruption.is_some()
    }

    /// Returns true if the pod was deleted or disrupted before a process that ended at `end`: its deletion was
    /// requested, or it became the target of a disruption, at that time or before. An end whose time is unknown
    /// counts as later.
    pub fn was_taken_away(&self, end: Option<Timestamp>) -> bool {
        if self.ended_first {
            return false;
        }
        let comes_first = |time: Option<Timestamp>| time.zip(end).is_none_or(|(time, end)| time <= end);
        let is_deleted_first = self.deleting && comes_first(self.deletion.map(|deletion| deletion.requested));
        let disruption = self.disruption.as_ref();
        is_deleted_first || disruption.is_some_and(|disruption| comes_first(disruption.time))
    }

    /// Returns the time when the last regular container ended, if all have ended and their times are known.
    pub fn ended_at(&self) -> Option<Timestamp> {
        let regular = self
            .containers
            .iter()
            .filter(|c| c.kind == ContainerKind::Regular);
        let ends: Option<Vec<Timestamp>> = regular.map(|c| c.ended.as_ref()?.finished_at).collect();
        ends?.into_iter().max()
    }

    /// Returns the regular container of this name.
    pub fn container(&self, name: &str) -> Option<&ContainerRecord> {
        let mut regular = self
            .containers
            .iter()
            .filter(|c| c.kind == ContainerKind::Regular);
        regular.find(|container| container.name == name)
    }
}

impl From<&Pod> for PodRecord {
    fn from(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let init = spec.and_then(|spec| spec.init_containers.as_ref());
        let sidecars = init.into_iter().flatten();
        let sidecars = sidecars.filter(|c| c.restart_policy.as_deref() == Some(SIDECAR_POLICY));
        let sidecars: Vec<&str> = sidecars.map(|container| container.name.as_str()).collect();
        let node = spec.and_then(|spec| spec.node_name.as_deref());
        Self::of(&pod.metadata, node, &sidecars, pod.status.as_ref())
    }
}

/// The restart policy that makes an init container a sidecar.
pub const SIDECAR_POLICY: &str = "Always";

impl PodRecord {
    /// Makes the record of a pod with this metadata and status on this node. `sidecars` are the names of the init
    /// containers that are sidecars.
    pub fn of(meta: &ObjectMeta, node: Option<&str>, sidecars: &[&str], status: Option<&PodStatus>) -> Self {
        let none = PodStatus::default();
        let status = status.unwrap_or(&none);
        let annotations = meta.annotations.as_ref();
        let attempt = annotations.and_then(|a| a.get(labels::RESTART_ATTEMPT));
        let condition = |type_: &str, value: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.find(|c| c.type_ == type_ && c.status == value)
        };
        let disruption = condition(DISRUPTION_TARGET, "True").map(|c| Box::new(Disruption::from(c)));
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
        let since = |c: &PodCondition| c.last_transition_time.as_ref().map(|time| time.0);
        let waits = condition("PodScheduled", "False");
        let unscheduled =
            waits.and_then(|c| Some((c.reason.clone()?, cut(c.message.clone().unwrap_or_default()))));
        let scheduled = condition("PodScheduled", "True");
        let init = status.init_container_statuses.iter().flatten();
        let init = init.map(|c| ContainerRecord {
            kind: match sidecars.contains(&&*c.name) {
                true => ContainerKind::Sidecar,
                false => ContainerKind::Init,
            },
            ..c.into()
        });
        let main = status
            .container_statuses
            .iter()
            .flatten()
            .map(ContainerRecord::from);
        let mut containers: Vec<ContainerRecord> = init.chain(main).collect();
        // Most pods have one container, and there are many pods.
        containers.shrink_to_fit();
        let phase = match status.phase.as_deref() {
            Some("Running") => Phase::Running,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            Some("Unknown") => Phase::Unknown,
            _ => Phase::Pending,
        };
        let deleting = meta.deletion_timestamp.is_some();
        let waits_for_node = phase == Phase::Pending && scheduled.is_none() && node.is_none();
        let created = meta.creation_timestamp.as_ref().map(|time| time.0);
        let just_runs = phase == Phase::Running && !deleting && disruption.is_none();
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            attempt: attempt.and_then(|a| a.parse().ok()).unwrap_or(0),
            phase,
            ready: phase == Phase::Running && condition("Ready", "True").is_some(),
            deleting,
            deletion: DeletionTimes::of(meta),
            finalizers: meta
                .finalizers
                .iter()
                .flatten()
                .filter(|_| deleting)
                .cloned()
                .collect(),
            disrupted: disruption.is_some() || taken_away,
            disruption,
            ended_first: false,
            node: node.filter(|_| !just_runs).map(str::to_owned),
            conditions,
            reason,
            message: status.message.clone().filter(|m| !m.is_empty()).map(cut),
            scheduled: scheduled.is_some(),
            scheduled_at: scheduled.filter(|_| phase == Phase::Pending).and_then(since),
            without_node_since: created.filter(|_| waits_for_node),
            unscheduled_since: waits.and_then(since),
            unscheduled,
            seen_to_end: None,
            containers,
        }
    }
}

impl DeletionTimes {
    pub(super) fn of(meta: &ObjectMeta) -> Option<Self> {
        let due = meta.deletion_timestamp.as_ref()?.0;
        let grace = SignedDuration::from_secs(meta.deletion_grace_period_seconds.unwrap_or(0));
        let requested = due.checked_sub(grace).unwrap_or(due);
        Some(Self { requested, due })
    }
}

impl From<&PodCondition> for Disruption {
    fn from(condition: &PodCondition) -> Self {
        Self {
            reason: condition.reason.clone().unwrap_or_default(),
            message: cut(condition.message.clone().unwrap_or_default()),
            time: condition
                .last_transition_time
                .as_ref()
                .map(|t| t.0)
                .filter(|t| is_writable(*t)),
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
            kind: ContainerKind::Regular,
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
            reason: state.reason.clone().filter(|r| !r.is_empty()).map(cut),
            message: state.message.clone().filter(|m| !m.is_empty()).map(cut),
            started_at: state.started_at.as_ref().map(|t| t.0),
            // The time becomes part of a status.
            finished_at: state
                .finished_at
                .as_ref()
                .map(|t| t.0)
                .filter(|t| is_writable(*t)),
        }
    }
}

/// Returns the end of a message, with at most `bound` bytes. The end is kept because it has the most information.
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

/// Returns the end of a text that a container or a node wrote, printable.
fn cut(message: String) -> String {
    last_words(printable(last_words(message, MAX_MESSAGE)), MAX_MESSAGE)
}

#[cfg(test)]
mod tests;
