//! The progress of jobs and replicas, for the output and the summary.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use local_node::PodPhase;
use training_job::api::labels::{Keys, OPERATOR_NAME, RESTART_ATTEMPT};
use training_job_local::{Run, RunEvent};

use crate::kinds::{Kind, Kinds};

/// The progress of all jobs and replicas of a run.
pub(super) struct Progress {
    jobs: Vec<String>,
    replicas: BTreeMap<String, ReplicaRow>,
    /// The keys of the labels of each controller's jobs, and their roles in the order in which their kind defines them.
    kinds: BTreeMap<&'static str, (Keys, Vec<String>)>,
}

/// The progress of a replica.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReplicaRow {
    pub(super) job: String,
    pub(super) role: String,
    /// The position of its role among the roles of the kind.
    place: usize,
    pub(super) index: u32,
    pub(super) phase: String,
    pub(super) exit_code: Option<i32>,
    pub(super) restarts: i32,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    /// True if its pod was deleted and its processes still run.
    pub(super) stopping: bool,
    /// True if it was stopped before it ended by itself.
    pub(super) stopped: bool,
    /// The reason why it can never start on this machine, if any.
    dead_end: Option<String>,
    /// The number of its earlier restarts with a new pod.
    attempt: i32,
}

/// A change that is printed as a line where there is no live table.
pub(super) struct Change {
    pub(super) who: String,
    pub(super) what: String,
}

impl Progress {
    pub(super) fn new(run: &Run, kinds: &Kinds) -> Self {
        Self {
            jobs: run.statuses().map(|(job, _)| job.to_owned()).collect(),
            replicas: BTreeMap::new(),
            kinds: kinds
                .iter()
                .map(|kind| (kind.framework.controller, (kind.framework.keys(), roles(kind))))
                .collect(),
        }
    }

    /// Records an event. Returns the change if it is worth a line.
    pub(super) fn record(&mut self, event: &RunEvent) -> Option<Change> {
        match event {
            RunEvent::Condition { job, condition } => Some(Change {
                who: job.clone(),
                what: format!("{}: {}", condition.type_, condition.message),
            }),
            RunEvent::Pod { pod, gone, dead_end } => self.record_pod(pod, *gone, dead_end.clone()),
            _ => None,
        }
    }

    /// Records a pod. Returns the change of its replica if it is worth a line.
    fn record_pod(&mut self, pod: &Pod, gone: bool, dead_end: Option<String>) -> Option<Change> {
        let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        let kind = self.kinds.get(&*label(OPERATOR_NAME));
        let keys = kind.map_or(Keys::DEFAULT, |(keys, _)| *keys);
        let role = label(&keys.replica_type());
        let place = kind.and_then(|(_, roles)| roles.iter().position(|r| *r == role));
        let status = pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let attempt = pod
            .annotations()
            .get(RESTART_ATTEMPT)
            .and_then(|a| a.parse().ok())
            .unwrap_or(0);
        let mut row = ReplicaRow {
            job: label(&keys.job_name()),
            place: place.unwrap_or(0),
            role,
            index: label(&keys.replica_index()).parse().unwrap_or(0),
            phase: status.phase.unwrap_or_else(|| "Pending".to_owned()),
            exit_code: exit_code(&containers),
            restarts: attempt + containers.iter().map(|c| c.restart_count).sum::<i32>(),
            started: status.start_time.map(|t| t.0),
            ended: ended(&containers),
            stopping: false,
            stopped: PodPhase::from_pod(pod, gone).stopped,
            dead_end,
            attempt,
        };
        let runs = !matches!(row.phase.as_str(), "Succeeded" | "Failed");
        row.stopping = !gone && runs && pod.metadata.deletion_timestamp.is_some();
        let before = self.replicas.get(&pod.name_any());
        let printed = |r: &ReplicaRow| (describe(r), r.attempt, r.restarts);
        let change = (!gone && before.map(printed) != Some(printed(&row))).then(|| Change {
            who: pod.name_any(),
            what: describe(&row),
        });
        self.replicas.insert(pod.name_any(), row);
        change
    }

    /// Returns the replicas sorted by job, role and index. Roles are in the order of their kind.
    pub(super) fn rows(&self) -> Vec<(&String, &ReplicaRow)> {
        let mut rows: Vec<_> = self.replicas.iter().collect();
        rows.sort_by_key(|(_, row)| (row.job.clone(), row.place, row.index));
        rows
    }

    /// Returns a pod's name as printed before its lines: without the job's name if there is only one job.
    pub(super) fn short<'a>(&self, pod: &'a str) -> &'a str {
        match &self.jobs[..] {
            [job] => pod
                .strip_prefix(job.as_str())
                .and_then(|rest| rest.strip_prefix('-'))
                .unwrap_or(pod),
            _ => pod,
        }
    }
}

fn roles(kind: &Kind) -> Vec<String> {
    let roles = kind.framework.roles.iter();
    roles.map(|role| role.name.to_lowercase()).collect()
}

fn describe(row: &ReplicaRow) -> String {
    if row.stopping {
        return "stopping".to_owned();
    }
    if row.stopped {
        return "stopped".to_owned();
    }
    if let Some(why) = &row.dead_end {
        return format!("{}: {why}", row.phase);
    }
    match (row.phase.as_str(), row.exit_code) {
        ("Failed", Some(code)) => format!("Failed with exit code {code}"),
        ("Pending", _) if row.restarts > 0 => format!("Pending, restart {}", row.restarts),
        ("Running", _) if row.restarts > 0 => format!("Running, restart {}", row.restarts),
        (phase, _) => phase.to_owned(),
    }
}

/// Returns the highest exit code of the containers.
fn exit_code(containers: &[ContainerStatus]) -> Option<i32> {
    let ends = containers
        .iter()
        .filter_map(|c| c.state.as_ref()?.terminated.as_ref());
    ends.map(|end| end.exit_code).max()
}

fn ended(containers: &[ContainerStatus]) -> Option<Timestamp> {
    let ends = containers
        .iter()
        .filter_map(|c| c.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
    ends.map(|t| t.0).max()
}
