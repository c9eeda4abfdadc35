//! The replicas of a job with the states of their pods (pure).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use training_job::plan::observed::{ContainerRecord, Phase, PodRecord, Termination};

use crate::observe::ObservedJob;
use crate::outline::RoleOutline;

/// A role with its replicas.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleView {
    pub(crate) role: String,
    pub(crate) restart_policy: String,
    pub(crate) ready: usize,
    /// The restarts of the whole role and of its replicas, which the operator has counted.
    pub(crate) restarts: i32,
    pub(crate) replicas: Vec<ReplicaView>,
}

/// A replica with its pod.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaView {
    /// `<role in lower case>-<index>`.
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) pod: String,
    pub(crate) state: ReplicaState,
    /// The reason for the state in a few words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
    /// The message of the cluster about the reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finished: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The restarts of the replica by the operator, and of its containers by the kubelet.
    pub(crate) restarts: i32,
    #[serde(skip)]
    pub(crate) age: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum ReplicaState {
    /// It is to be created, or was deleted when the job ended or was suspended.
    NoPod,
    Pending,
    /// The pod runs and is not ready.
    Running,
    Ready,
    /// The pod is being deleted.
    Stopping,
    Succeeded,
    Failed,
    /// The node of the pod does not respond, or the user may not list pods.
    Unknown,
}

impl ReplicaState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoPod => "No pod",
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Ready => "Ready",
            Self::Stopping => "Stopping",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// Returns the roles with their replicas. An invalid job has none.
pub(crate) fn roles(observed: &ObservedJob) -> Vec<RoleView> {
    let pods: BTreeMap<&str, &Pod> = observed
        .pods
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.as_deref()?, pod)))
        .collect();
    let recovery = &observed.job.status.recovery;
    let Ok(outline) = &observed.job.outline else {
        return Vec::new();
    };
    let counts = observed.job.role_counts();
    let view = |role: &RoleOutline| {
        let completed = recovery.completed.get(&role.name).map_or("", String::as_str);
        let replica = |index: u32| {
            let pod = role.pod_name(index);
            let name = format!("{}-{index}", role.slug);
            match pods.get(pod.as_str()) {
                Some(found) => of_pod(
                    name,
                    index,
                    pod,
                    found,
                    role.main_container.as_deref(),
                    observed.now,
                ),
                None => {
                    let state = match contains(completed, index) {
                        true => ReplicaState::Succeeded,
                        false if observed.is_forbidden("pods") => ReplicaState::Unknown,
                        false => ReplicaState::NoPod,
                    };
                    ReplicaView::without_pod(name, index, pod, state)
                }
            }
        };
        let mut replicas: Vec<ReplicaView> = (0..role.replicas).map(replica).collect();
        let of_role = recovery.roles.get(&role.name).copied().unwrap_or(0);
        let mut restarts = of_role;
        for replica in &mut replicas {
            let own = recovery.replicas.get(&replica.name).copied().unwrap_or(0);
            restarts += own;
            replica.restarts += own + of_role + recovery.job;
        }
        let is_ready = |replica: &&ReplicaView| replica.state == ReplicaState::Ready;
        let counted = counts.iter().find(|count| count.role == role.name);
        let ready = match counted.filter(|_| observed.is_forbidden("pods")) {
            Some(count) => usize::try_from(count.ready).unwrap_or(0),
            None => replicas.iter().filter(is_ready).count(),
        };
        RoleView {
            role: role.name.clone(),
            restart_policy: role.restart_policy.clone(),
            ready,
            restarts,
            replicas,
        }
    };
    outline
        .roles
        .iter()
        .filter(|role| role.replicas > 0)
        .map(view)
        .collect()
}

impl ReplicaView {
    fn without_pod(name: String, index: u32, pod: String, state: ReplicaState) -> Self {
        Self {
            name,
            index,
            pod,
            state,
            why: String::new(),
            message: String::new(),
            node: None,
            started: None,
            finished: None,
            exit_code: None,
            restarts: 0,
            age: None,
        }
    }
}

fn of_pod(
    name: String,
    index: u32,
    pod: String,
    found: &Pod,
    main: Option<&str>,
    now: Timestamp,
) -> ReplicaView {
    let record = PodRecord::from(found);
    let main = main.and_then(|main| record.container(main));
    let end = main.and_then(|container| container.ended.as_ref());
    let created = found.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let mut view = ReplicaView::without_pod(name, index, pod, state(&record));
    view.node = found.spec.as_ref().and_then(|spec| spec.node_name.clone());
    view.started = found
        .status
        .as_ref()
        .and_then(|status| status.start_time.as_ref())
        .map(|time| time.0);
    view.finished = end.and_then(|end| end.finished_at).or_else(|| record.ended_at());
    view.exit_code = end.map(|end| end.exit_code);
    view.restarts = record.containers.iter().map(|container| container.restarts).sum();
    view.age = created.map(|created| now.duration_since(created).as_secs().max(0));
    (view.why, view.message) = reason(&record, main, view.state);
    view
}

fn state(pod: &PodRecord) -> ReplicaState {
    match pod.phase {
        Phase::Succeeded => ReplicaState::Succeeded,
        Phase::Failed => ReplicaState::Failed,
        _ if pod.deleting => ReplicaState::Stopping,
        Phase::Unknown => ReplicaState::Unknown,
        Phase::Running if pod.ready => ReplicaState::Ready,
        Phase::Running => ReplicaState::Running,
        Phase::Pending => ReplicaState::Pending,
    }
}

/// Returns the reason for a pod's state in a few words, and the cluster's message about it.
fn reason(pod: &PodRecord, main: Option<&ContainerRecord>, state: ReplicaState) -> (String, String) {
    let failed = || {
        let all = pod.containers.iter();
        let ends = all.filter_map(|container| container.ended.as_ref().filter(|end| end.exit_code != 0));
        main.and_then(|container| container.ended.as_ref())
            .filter(|end| end.exit_code != 0)
            .or(ends.into_iter().next())
    };
    if let Some(disruption) = &pod.disruption {
        return (disruption.reason.clone(), disruption.message.clone());
    }
    match state {
        ReplicaState::Failed => match (failed(), &pod.reason) {
            (_, Some(reason)) => (reason.clone(), pod.message.clone().unwrap_or_default()),
            (Some(end), None) => (ended(end), end.message.clone().unwrap_or_default()),
            (None, None) => (String::new(), pod.message.clone().unwrap_or_default()),
        },
        ReplicaState::Stopping => {
            let since = pod
                .deletion
                .map(|deletion| format!("deletion requested at {}", deletion.requested));
            (since.unwrap_or_default(), String::new())
        }
        _ => match pod.waits_for() {
            Some((reason, message)) => (reason.clone(), message.clone()),
            None => {
                let last = main.and_then(|container| container.last.as_ref());
                (
                    last.map(|end| format!("restarted after {}", ended(end)))
                        .unwrap_or_default(),
                    String::new(),
                )
            }
        },
    }
}

/// Returns `exit 137 (OOMKilled)`.
fn ended(end: &Termination) -> String {
    match end.reason.as_deref() {
        None | Some("Error" | "Completed") => format!("exit {}", end.exit_code),
        Some(reason) => format!("exit {} ({reason})", end.exit_code),
    }
}

/// Returns true if a list such as `0-2,5` contains the index.
fn contains(list: &str, index: u32) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&index))
    })
}
