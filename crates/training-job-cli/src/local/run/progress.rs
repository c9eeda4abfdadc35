//! The progress of jobs and replicas, for the output and the summary.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use local_node::PodPhase;
use training_job::api::JobCondition;
use training_job::api::labels::{Keys, OPERATOR_NAME, RESTART_ATTEMPT};
use training_job_local::{Run, RunEvent};

use crate::kinds::{Kind, Kinds};

/// The progress of all jobs and replicas of a run.
pub(super) struct Progress {
    jobs: Vec<String>,
    replicas: BTreeMap<String, ReplicaRow>,
    loops: Loops,
    /// The conditions in the order in which they became true, each with its job.
    conditions: Vec<(String, JobCondition)>,
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
    /// The latest end of one of its containers that was no success: `exited with 3`.
    end: Option<String>,
    /// The delay before the restart that it waits for.
    delay: Option<String>,
}

/// A change that is printed as a line where there is no live table.
pub(super) struct Change {
    pub(super) who: String,
    pub(super) what: String,
    /// True if it is printed beside a table as well, because the table shows it too briefly.
    pub(super) is_news: bool,
}

impl Progress {
    pub(super) fn new(run: &Run, kinds: &Kinds) -> Self {
        Self {
            jobs: run.statuses().map(|(job, _)| job.to_owned()).collect(),
            replicas: BTreeMap::new(),
            loops: Loops::default(),
            conditions: Vec::new(),
            kinds: kinds
                .iter()
                .map(|kind| (kind.framework.controller, (kind.framework.keys(), roles(kind))))
                .collect(),
        }
    }

    /// Records an event. Returns the change if it is worth a line.
    pub(super) fn record(&mut self, event: &RunEvent) -> Option<Change> {
        match event {
            RunEvent::Condition { job, condition } => {
                self.conditions.push((job.clone(), condition.clone()));
                Some(Change {
                    who: job.clone(),
                    what: format!("{}: {}", condition.type_, condition.message),
                    is_news: false,
                })
            }
            RunEvent::Warning { job, message } => Some(Change {
                who: job.clone(),
                what: message.clone(),
                is_news: true,
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
            end: latest_end(&containers),
            delay: containers.iter().find_map(delay),
        };
        if row.delay.is_some() {
            row.phase = "Waiting".to_owned();
        }
        let runs = !matches!(row.phase.as_str(), "Succeeded" | "Failed");
        row.stopping = !gone && runs && pod.metadata.deletion_timestamp.is_some();
        let before = self.replicas.get(&pod.name_any());
        let printed = |r: &ReplicaRow| (describe(r), r.attempt, r.restarts);
        let has_changed = !gone && before.map(printed) != Some(printed(&row));
        // An end that was printed with the delay before its restart is not printed again after the restart.
        let by_itself = !row.stopping && !row.stopped;
        let is_end = by_itself && row.end.is_some() && (row.delay.is_some() || row.phase == "Failed");
        let who = pod.name_any();
        let change = has_changed.then(|| Change {
            what: describe(&row)
                + self
                    .loops
                    .note(&who, is_end.then_some(row.end.as_deref()).flatten()),
            who,
            is_news: is_end,
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

    /// Returns the conditions of a job in the order in which they became true.
    pub(super) fn conditions(&self, job: &str) -> Vec<&JobCondition> {
        let of_job = self.conditions.iter().filter(|(of, _)| of == job);
        of_job.map(|(_, condition)| condition).collect()
    }

    /// Returns the names of the replicas that have not ended, as printed.
    pub(super) fn unfinished(&self) -> Vec<&str> {
        let rows = self.rows().into_iter();
        let left = rows.filter(|(_, row)| row.ended.is_none() && !row.stopped);
        left.map(|(name, _)| self.short(name)).collect()
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

/// The number of equal ends of a replica within [`LOOP_WINDOW`] that make a loop.
const LOOP_ENDS: usize = 3;

/// The time within which equal ends count as a loop.
const LOOP_WINDOW: Duration = Duration::from_secs(60);

/// The latest ends of each replica, to notice one that fails in the same way again and again.
#[derive(Default)]
struct Loops {
    ends: BTreeMap<String, (String, Vec<Instant>)>,
}

impl Loops {
    /// Records an end of a replica. Returns the note that is printed once for a loop, or "".
    fn note(&mut self, replica: &str, end: Option<&str>) -> &'static str {
        let Some(end) = end else { return "" };
        let (last, times) = self.ends.entry(replica.to_owned()).or_default();
        if last != end {
            end.clone_into(last);
            times.clear();
        }
        times.push(Instant::now());
        let first = times.len().checked_sub(LOOP_ENDS).map(|first| times[first]);
        match first.is_some_and(|first| first.elapsed() < LOOP_WINDOW) && times.len() == LOOP_ENDS {
            true => {
                " (fails in the same way each time: end the run with Ctrl-C, or set runPolicy.backoffLimit)"
            }
            false => "",
        }
    }
}

/// Returns the latest end of a container that was no success. The cause is added if it never became a process; the
/// output of a process has been printed.
fn latest_end(containers: &[ContainerStatus]) -> Option<String> {
    let ends = containers.iter().filter_map(|container| {
        let states = [container.state.as_ref(), container.last_state.as_ref()];
        let end = states
            .into_iter()
            .flatten()
            .find_map(|state| state.terminated.as_ref())?;
        (end.exit_code != 0).then_some((&container.name, end))
    });
    let (name, end) = ends.max_by_key(|(_, end)| end.finished_at.as_ref().map(|at| at.0))?;
    let mut text = match containers.len() {
        1 => String::new(),
        _ => format!("container {name} "),
    };
    text += &match end.signal {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("exited with {}", end.exit_code),
    };
    if let Some(message) = end.message.as_ref().filter(|_| end.container_id.is_none()) {
        text = format!("{text}: {message}");
    }
    Some(text)
}

/// Returns the delay of a container that waits for its restart.
fn delay(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let message = waiting.message.as_deref()?.strip_prefix("back-off ")?;
    Some(message.split(' ').next()?.to_owned())
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
    if let (Some(end), Some(delay)) = (&row.end, &row.delay) {
        let restart = row.restarts + 1;
        return match delay.as_str() {
            "0s" => format!("{end}; restart {restart}"),
            delay => format!("{end}; restart {restart} in {delay}"),
        };
    }
    match (row.phase.as_str(), row.exit_code) {
        ("Failed", Some(code)) => match &row.end {
            Some(end) => format!("Failed: {end}"),
            None => format!("Failed with exit code {code}"),
        },
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
