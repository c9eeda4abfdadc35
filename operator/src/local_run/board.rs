//! What is known of jobs and replicas, for the view and the summary.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use local_node::{PodPhase, Run, RunEvent};
use training_job::api::labels;

use crate::kinds::Kind;

/// All jobs and replicas of a run.
pub(super) struct Board {
    jobs: Vec<String>,
    replicas: BTreeMap<String, Row>,
    /// The roles of each controller's jobs in their order.
    order: BTreeMap<&'static str, Vec<String>>,
}

/// A replica.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row {
    pub(super) job: String,
    pub(super) role: String,
    /// The place of its role among those of its kind.
    place: usize,
    pub(super) index: u32,
    pub(super) phase: String,
    pub(super) exit_code: Option<i32>,
    pub(super) restarts: i32,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    /// Whether its pod was deleted, and its processes still run.
    pub(super) stopping: bool,
    /// Whether it was stopped before it ended by itself.
    pub(super) stopped: bool,
    /// Why it cannot start, here, ever.
    dead_end: Option<String>,
    /// Restarts that a new pod began.
    attempt: i32,
}

/// Something worth a line where there is no live view.
pub(super) struct News {
    pub(super) who: String,
    pub(super) what: String,
}

impl Board {
    pub(super) fn new(run: &Run, kinds: &[Kind]) -> Self {
        Self {
            jobs: run.statuses().map(|(job, _)| job.to_owned()).collect(),
            replicas: BTreeMap::new(),
            order: kinds
                .iter()
                .map(|kind| (kind.framework.controller, roles(kind)))
                .collect(),
        }
    }

    /// Takes in what has happened; returns what is worth a line.
    pub(super) fn take(&mut self, event: &RunEvent) -> Option<News> {
        match event {
            RunEvent::Condition { job, condition } => Some(News {
                who: job.clone(),
                what: format!("{}: {}", condition.type_, condition.message),
            }),
            RunEvent::Pod { pod, gone, dead_end } => self.pod(pod, *gone, dead_end.clone()),
            _ => None,
        }
    }

    /// Takes in a pod; returns its new phase, if it has one.
    fn pod(&mut self, pod: &Pod, gone: bool, dead_end: Option<String>) -> Option<News> {
        let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let attempt = pod
            .annotations()
            .get(labels::RESTART_ATTEMPT)
            .and_then(|a| a.parse().ok())
            .unwrap_or(0);
        let mut row = Row {
            job: label(labels::JOB_NAME),
            place: self.place(&label(labels::OPERATOR_NAME), &label(labels::REPLICA_TYPE)),
            role: label(labels::REPLICA_TYPE),
            index: label(labels::REPLICA_INDEX).parse().unwrap_or(0),
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
        let told = |r: &Row| (describe(r), r.attempt, r.restarts);
        let news = (!gone && before.map(told) != Some(told(&row))).then(|| News {
            who: pod.name_any(),
            what: describe(&row),
        });
        self.replicas.insert(pod.name_any(), row);
        news
    }

    /// The replicas by job, role in its order, and index.
    pub(super) fn rows(&self) -> Vec<(&String, &Row)> {
        let mut rows: Vec<_> = self.replicas.iter().collect();
        rows.sort_by_key(|(_, row)| (row.job.clone(), row.place, row.index));
        rows
    }

    fn place(&self, controller: &str, role: &str) -> usize {
        let roles = self.order.get(controller);
        roles
            .and_then(|roles| roles.iter().position(|r| r == role))
            .unwrap_or(0)
    }

    /// The name by which a replica's lines are marked: without its job's where there is one job only.
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

fn describe(row: &Row) -> String {
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

/// The exit code of the container that ended worst.
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
