//! Compact records of pods.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::{COMMON_CONDITIONS, RestartPolicy, is_writable, labels};
use crate::job::JobObject;

use super::container::{ContainerKind, ContainerRecord, ContainerRestart, EndOrder, Termination};
use super::message::cut;

/// The reason of an unscheduled pod for which there is no node, and of a group that Volcano does not admit.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";

/// The reason of an unscheduled pod that is held back by scheduling gates.
pub(crate) const GATED: &str = "SchedulingGated";

/// The condition of a pod that is the target of a disruption.
pub(crate) const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// The reason of that condition if the kubelet sets it, by the same clock as the ends of containers.
const BY_KUBELET: &str = "TerminationByKubelet";

/// The maximum difference between the clocks of a node and of the API server.
pub(crate) const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The record of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRecord {
    /// The name of the pod.
    pub name: String,
    /// The UID of the pod.
    pub uid: String,
    /// The number of restarts of its replica before the pod was created.
    pub attempt: u32,
    /// Hashes of the labels by which the operator and services select the pod; unset if unknown.
    pub own_labels: Option<Box<[u64]>>,
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
    /// The order of the pod's end and of its deletion or disruption, as the controller observed them.
    pub order: EndOrder,
    /// The restart policy in the pod's spec; unset if it is unknown.
    pub restart_policy: Option<RestartPolicy>,
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
    /// The cause in a sentence; at most [`MAX_MESSAGE`](super::MAX_MESSAGE) bytes.
    pub message: String,
    /// The time since when the condition has been True.
    pub time: Option<Timestamp>,
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

    /// Returns true if the pod has these labels of the operator, or its labels are unknown.
    pub(crate) fn has_labels<'l>(&self, wanted: impl IntoIterator<Item = &'l (String, String)>) -> bool {
        let mut wanted = wanted
            .into_iter()
            .map(|(key, value)| labels::fingerprint(key, value));
        let own = self.own_labels.as_ref();
        own.is_none_or(|own| wanted.all(|label| own.contains(&label)))
    }

    /// Returns true if the pod has the labels of `wanted` that the operator selects by.
    pub fn is_labeled_as(&self, wanted: &JobObject) -> bool {
        let own = fingerprints(&wanted.metadata);
        let has = self.own_labels.as_ref();
        has.is_none_or(|has| own.iter().all(|label| has.contains(label)))
    }

    /// Returns true if the pod has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns true if the pod is being deleted or disrupted.
    pub fn is_going(&self) -> bool {
        self.deleting || self.disruption.is_some()
    }

    /// Returns true if the pod was deleted or disrupted before `end`, the end of one of its containers, or before the
    /// end of the pod if that is None. The order decides in which the controller observed both. If it has not observed
    /// it, the API server's answer to the deletion decides, which grants a pod that has ended no grace period. Otherwise
    /// the times decide: a process that ended at most [`MAX_CLOCK_SKEW`] earlier, or at an unknown time, was taken away.
    pub fn was_taken_away(&self, end: Option<&Termination>) -> bool {
        let (order, at) = match end {
            Some(end) => (end.order, end.finished_at),
            None => (self.order, self.ended_at()),
        };
        match order {
            EndOrder::EndedFirst => return false,
            EndOrder::GoingFirst => return true,
            EndOrder::Unknown => {}
        }
        let had_ended = self.is_terminal() && self.deletion.is_some_and(|times| times.requested == times.due);
        let comes_first = |time: Option<Timestamp>, skew: SignedDuration| {
            time.zip(at)
                .is_none_or(|(time, end)| end.duration_since(time) >= -skew)
        };
        let requested = self.deletion.map(|deletion| deletion.requested);
        let is_deleted_first = self.deleting && !had_ended && comes_first(requested, MAX_CLOCK_SKEW);
        is_deleted_first
            || self
                .disruption
                .as_ref()
                .is_some_and(|disruption| match disruption.reason == BY_KUBELET {
                    true => comes_first(disruption.time, SignedDuration::ZERO),
                    false => !had_ended && comes_first(disruption.time, MAX_CLOCK_SKEW),
                })
    }

    /// Returns true if the kubelet restarts this container of the pod, which has ended. All containers restart if
    /// another one ended before, and its restart rules say so.
    pub fn restarts(&self, container: &ContainerRecord) -> bool {
        let Some(end) = container.ended.as_ref().filter(|_| !self.is_terminal()) else {
            return false;
        };
        let is_earlier = |other: &Termination| {
            let times = other.finished_at.zip(end.finished_at);
            times.is_none_or(|(other, end)| other <= end)
        };
        let mut others = self.containers.iter();
        container.restarts_by_itself(self.restart_policy.as_ref())
            || others.any(|other| other.end_that_restarts_all().is_some_and(is_earlier))
    }

    /// Returns how often the kubelet restarted all containers of the pod at once, by the containers' restart rules.
    pub fn restarts_of_all(&self) -> i32 {
        let mut containers = self.containers.iter();
        let rules = |c: &ContainerRecord| {
            c.restart
                .as_ref()
                .is_some_and(|restart| restart.may_restart_all())
        };
        let least = || self.containers.iter().map(|c| c.restarts).min();
        containers.any(rules).then(least).flatten().unwrap_or(0)
    }

    /// Returns true if a process of the pod ended before the pod was deleted or disrupted.
    pub fn has_own_end(&self) -> bool {
        let regular = self.containers.iter();
        let regular = regular.filter(|container| container.kind == ContainerKind::Regular);
        let mut ends = regular
            .filter_map(|container| container.ended.as_ref())
            .peekable();
        match ends.peek() {
            Some(_) => ends.any(|end| !self.was_taken_away(Some(end))),
            None => self.is_terminal() && !self.was_taken_away(None),
        }
    }

    /// Adds the facts that the pod itself does not contain. `before` is the record of its previous state, if there is
    /// one, and `now` the time of the observation.
    pub fn follow(&mut self, before: Option<&Self>, now: Timestamp) {
        let is_going = |pod: &Self| pod.deletion.is_some() || pod.disruption.is_some();
        let (went, goes) = (before.is_some_and(is_going), is_going(self));
        // `known` is the order if the end was observed before.
        let order = |known: Option<EndOrder>| match known {
            Some(known) if known != EndOrder::Unknown => known,
            None if went => EndOrder::GoingFirst,
            _ if !goes => EndOrder::EndedFirst,
            _ => EndOrder::Unknown,
        };
        let mut ends = self.is_terminal() && before.is_some_and(|before| !before.is_terminal());
        for container in &mut self.containers {
            let Some(end) = &mut container.ended else {
                continue;
            };
            let held = before.and_then(|before| before.containers.iter().find(|c| c.name == container.name));
            let held = held.filter(|held| held.restarts == container.restarts);
            let known = held.and_then(|held| held.ended.as_ref()).map(|end| end.order);
            ends |= before.is_some() && known.is_none() && container.kind == ContainerKind::Regular;
            end.order = order(known);
        }
        if self.is_terminal() {
            self.order = order(
                before
                    .filter(|before| before.is_terminal())
                    .map(|before| before.order),
            );
        }
        // The kubelet deletes a pod once more, without a grace period, to remove it. The API server keeps the time of the
        // first request.
        if let Some(deletion) = &mut self.deletion
            && let Some(earlier) = before.and_then(|before| before.deletion)
        {
            match deletion.requested == deletion.due {
                true => *deletion = earlier,
                false => deletion.requested = deletion.requested.min(earlier.requested),
            }
        }
        self.seen_to_end = match ends {
            true => Some(now),
            false => before.and_then(|before| before.seen_to_end),
        };
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
        let init = spec
            .into_iter()
            .flat_map(|spec| spec.init_containers.iter().flatten());
        let containers = init.chain(spec.into_iter().flat_map(|spec| &spec.containers));
        let restarts: Vec<_> = containers.filter_map(ContainerRestart::of).collect();
        let spec = ObservedSpec {
            node: spec.and_then(|spec| spec.node_name.as_deref()),
            restart_policy: spec.and_then(|spec| spec.restart_policy.as_deref()),
            containers: restarts.iter().collect(),
        };
        Self::of(&pod.metadata, &spec, pod.status.as_ref())
    }
}

/// Returns the hashes of the labels by which the operator and services may select a pod.
fn fingerprints(meta: &ObjectMeta) -> Box<[u64]> {
    let own = meta
        .labels
        .iter()
        .flatten()
        .filter(|(key, _)| labels::is_own(key));
    own.map(|(key, value)| labels::fingerprint(key, value)).collect()
}

impl ContainerRestart {
    /// Returns the restart policy of a container if it has one of its own.
    fn of(container: &Container) -> Option<Self> {
        container.restart_policy.as_ref()?;
        // The types of older Kubernetes versions do not have the rules.
        serde_json::from_value(serde_json::to_value(container).ok()?).ok()
    }
}

/// The part of a pod's spec that its record depends on.
#[derive(Clone, Debug, Default)]
pub struct ObservedSpec<'a> {
    /// The node of the pod.
    pub node: Option<&'a str>,
    /// The restart policy of the pod.
    pub restart_policy: Option<&'a str>,
    /// The init containers and containers. Those without a restart policy of their own may be missing.
    pub containers: Vec<&'a ContainerRestart>,
}

impl ObservedSpec<'_> {
    /// Returns the record of a container with this status, which is one of `kind`.
    fn record(&self, status: &ContainerStatus, kind: ContainerKind) -> ContainerRecord {
        let named = self.containers.iter().find(|spec| spec.name == status.name);
        let restart = named.filter(|spec| spec.restart_policy.is_some());
        let always = restart.is_some_and(|spec| spec.restart_policy == Some(RestartPolicy::Always));
        ContainerRecord {
            kind: match kind {
                ContainerKind::Init if always => ContainerKind::Sidecar,
                kind => kind,
            },
            restart: restart.map(|spec| Box::new((*spec).clone())),
            ..status.into()
        }
    }
}

impl PodRecord {
    /// Makes the record of a pod with this metadata, spec and status.
    pub fn of(meta: &ObjectMeta, spec: &ObservedSpec<'_>, status: Option<&PodStatus>) -> Self {
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
        let init = init.map(|c| spec.record(c, ContainerKind::Init));
        let main = status.container_statuses.iter().flatten();
        let main = main.map(|c| spec.record(c, ContainerKind::Regular));
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
        let waits_for_node = phase == Phase::Pending && scheduled.is_none() && spec.node.is_none();
        let created = meta.creation_timestamp.as_ref().map(|time| time.0);
        let just_runs = phase == Phase::Running && !deleting && disruption.is_none();
        Self {
            own_labels: Some(fingerprints(meta)),
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
            order: EndOrder::default(),
            restart_policy: spec.restart_policy.map(|policy| policy.to_owned().into()),
            node: spec.node.filter(|_| !just_runs).map(str::to_owned),
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
        let requested = due.checked_sub(grace).unwrap_or(Timestamp::MIN);
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

#[cfg(test)]
mod tests;
