//! The progress of jobs and replicas, for the output and the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use local_node::PodPhase;
use training_job::api::labels::{Keys, OPERATOR_NAME, RESTART_ATTEMPT};
use training_job::api::{ConditionType, JobCondition, JobStatus};
use training_job_local::RunEvent;
use training_job_review::Kind;

use super::plan::JobPlan;
use super::table::Row;
use crate::kinds::Kinds;

/// The progress of all jobs and replicas of a run.
pub(super) struct Progress {
    plans: Vec<JobPlan>,
    /// The number of replicas of each role in the jobs' specifications.
    expected: BTreeMap<RoleName, usize>,
    replicas: BTreeMap<String, ReplicaRow>,
    loops: Loops,
    /// The conditions in the order in which they became true, each with its job.
    conditions: Vec<(String, JobCondition)>,
    /// The keys of the labels of each controller's jobs, and their roles in the order in which their kind defines them.
    kinds: BTreeMap<&'static str, (Keys, Vec<String>)>,
    /// The framework's container of each controller's jobs.
    main_containers: BTreeMap<&'static str, &'static str>,
}

/// A role of a job. Sorted as in the table: by job, and by the position among the roles of the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoleName {
    pub(super) job: String,
    place: usize,
    pub(super) role: String,
}

/// The progress of a replica.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReplicaRow {
    pub(super) role: RoleName,
    index: u32,
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
    /// The latest end of one of its containers that was no success.
    end: Option<End>,
    /// The delay before the restart that it waits for.
    delay: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct End {
    exit_code: i32,
    /// For the user, as in `exited with 3`.
    text: String,
}

/// A change that is printed as a line where there is no live table.
pub(super) struct Change {
    pub(super) who: String,
    pub(super) what: String,
    /// True if it is printed beside a table as well, because the table shows it too briefly.
    pub(super) is_news: bool,
}

impl Progress {
    pub(super) fn new(plans: Vec<JobPlan>, kinds: &Kinds) -> Self {
        let mut progress = Self {
            plans: Vec::new(),
            expected: BTreeMap::new(),
            replicas: BTreeMap::new(),
            loops: Loops::default(),
            conditions: Vec::new(),
            main_containers: kinds
                .iter()
                .flat_map(|kind| {
                    kind.framework
                        .controllers()
                        .map(|name| (name, kind.framework.main_container))
                })
                .collect(),
            kinds: kinds
                .iter()
                .flat_map(|kind| {
                    let of_kind = move |name| (name, (kind.framework.keys(), roles(kind)));
                    kind.framework.controllers().map(of_kind)
                })
                .collect(),
        };
        for pod in plans.iter().flat_map(|plan| &plan.pods) {
            let (role, _) = progress.identify(pod);
            *progress.expected.entry(role).or_default() += 1;
        }
        progress.plans = plans;
        progress
    }

    pub(super) fn plan(&self, job: &str) -> Option<&JobPlan> {
        self.plans.iter().find(|plan| plan.name == job)
    }

    /// Returns the pods of each job before it runs, with their roles.
    pub(super) fn planned_pods(&self) -> impl Iterator<Item = (&str, Vec<(String, &Pod)>)> {
        self.plans.iter().map(|plan| {
            let pods = plan.pods.iter().map(|pod| (self.identify(pod).0.role, pod));
            (plan.name.as_str(), pods.collect())
        })
    }

    /// Returns the greatest width of the names before the output of processes.
    pub(super) fn writer_width(&self) -> usize {
        let writers = self.plans.iter().flat_map(JobPlan::writers);
        let widths = writers.map(|writer| self.short(&writer).chars().count());
        widths.max().unwrap_or(0)
    }

    /// Returns the role and the index of a pod's replica.
    fn identify(&self, pod: &Pod) -> (RoleName, u32) {
        let label = |key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        let kind = self.kinds.get(&*label(OPERATOR_NAME));
        let keys = kind.map_or(Keys::DEFAULT, |(keys, _)| *keys);
        let role = label(&keys.replica_type());
        let roles = kind.map(|(_, roles)| &roles[..]).unwrap_or_default();
        let place = roles.iter().position(|known| known.eq_ignore_ascii_case(&role));
        let name = RoleName {
            job: label(&keys.job_name()),
            place: place.unwrap_or(0),
            role: place.map_or(role, |place| roles[place].clone()),
        };
        (name, label(&keys.replica_index()).parse().unwrap_or(0))
    }

    /// Records an event. Returns the change if it is worth a line.
    pub(super) fn record(&mut self, event: &RunEvent) -> Option<Change> {
        match event {
            RunEvent::Condition { job, condition } => {
                // The times in the status are kept a second apart, so they may be in the future.
                let now = Timestamp::now();
                let known = condition.last_transition_time.as_ref().map(|at| at.0);
                let mut condition = condition.clone();
                condition.last_transition_time = Some(Time(known.map_or(now, |known| known.min(now))));
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
        let (role, index) = self.identify(pod);
        let status = pod.status.clone().unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let controller = pod.labels().get(OPERATOR_NAME);
        let main = controller.and_then(|controller| self.main_containers.get(&**controller));
        let attempt = pod
            .annotations()
            .get(RESTART_ATTEMPT)
            .and_then(|a| a.parse().ok())
            .unwrap_or(0);
        let mut row = ReplicaRow {
            role,
            index,
            phase: status.phase.unwrap_or_else(|| "Pending".to_owned()),
            exit_code: exit_code(&containers, main.copied().unwrap_or_default()),
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
        let printed = |r: &ReplicaRow| (describe(r, i64::MAX), r.attempt, r.restarts);
        let has_changed = !gone && before.map(printed) != Some(printed(&row));
        // A restart without a delay may follow an end before the end is seen.
        let is_unseen = |before: &ReplicaRow| {
            before.attempt == row.attempt && before.restarts < row.restarts && before.delay.is_none()
        };
        let by_itself = !row.stopping && !row.stopped;
        let limit = self.limit(&row.role.job);
        let limit = limit.unwrap_or(i64::MAX);
        let end = row.end.as_ref().filter(|_| by_itself);
        let (end, what) = match end {
            // An end that was printed with the delay before its restart is not printed again after the restart.
            Some(end) if row.delay.is_some() || row.phase == "Failed" => (Some(end), describe(&row, limit)),
            Some(end) if before.is_some_and(is_unseen) => match i64::from(row.restarts) <= limit {
                true => (Some(end), format!("{}; restart {}", end.text, row.restarts)),
                false => (Some(end), end.text.clone()),
            },
            _ => (None, describe(&row, limit)),
        };
        let who = pod.name_any();
        let is_loop = has_changed && self.loops.is_loop(&who, end.map(|end| end.text.as_str()));
        let note = match is_loop {
            true => loop_note(limit, self.restarts(&row)),
            false => String::new(),
        };
        let change = has_changed.then(|| Change {
            what: what + &note,
            who,
            is_news: end.is_some(),
        });
        self.replicas.insert(pod.name_any(), row);
        change
    }

    /// Returns the number of restarts after which a job fails.
    fn limit(&self, job: &str) -> Option<i64> {
        self.plan(job)?.backoff_limit
    }

    /// Returns the greatest number of restarts of the replicas of a job, and of this row.
    fn restarts(&self, row: &ReplicaRow) -> i64 {
        let others = self
            .replicas
            .values()
            .filter(|other| other.role.job == row.role.job);
        others
            .map(|other| other.restarts)
            .chain([row.restarts])
            .max()
            .unwrap_or_default()
            .into()
    }

    /// Sets what decided the end of each job: the replica that failed has its own exit code, although it was stopped
    /// afterwards, and no restart beyond those that the job counts.
    pub(super) fn settle<'a>(&mut self, statuses: impl Iterator<Item = (&'a str, &'a JobStatus)>) {
        for (_, status) in statuses.filter(|(_, status)| status.is(ConditionType::Failed)) {
            let Some(failure) = &status.failure else { continue };
            let row = failure.pod.as_ref().and_then(|pod| self.replicas.get_mut(pod));
            if let (Some(row), Some(code)) = (row, failure.exit_code) {
                row.exit_code = Some(code);
                row.phase = "Failed".to_owned();
                (row.stopping, row.stopped) = (false, false);
                row.restarts = row.restarts.min(status.restart_count);
            }
        }
    }

    /// Returns the replicas sorted by job, role and index. Roles are in the order of their kind.
    pub(super) fn rows(&self) -> Vec<(&String, &ReplicaRow)> {
        let mut rows: Vec<_> = self.replicas.iter().collect();
        rows.sort_by_key(|(_, row)| (&row.role, row.index));
        rows
    }

    /// Returns a row for each role of all jobs.
    pub(super) fn role_rows(&self) -> Vec<Row> {
        let seen = self.replicas.values().map(|row| &row.role);
        let roles: BTreeSet<&RoleName> = self.expected.keys().chain(seen).collect();
        let row = |role: &RoleName| {
            let replicas = self.replicas.values().filter(|row| row.role == *role);
            let (phases, restarts): (Vec<_>, Vec<_>) =
                replicas.map(|row| (row.plain_phase(), row.restarts)).unzip();
            let expected = self.expected.get(role).copied().unwrap_or(0);
            let name = match &self.plans[..] {
                [_] => role.role.clone(),
                _ => format!("{} {}", role.job, role.role),
            };
            Row::of_role(&name, expected, &phases, restarts.iter().sum())
        };
        roles.into_iter().map(row).collect()
    }

    /// Returns a row for each replica in trouble, failed ones first.
    pub(super) fn troubled_rows(&self) -> Vec<Row> {
        let now = Timestamp::now();
        let mut rows = self.rows();
        rows.retain(|(_, row)| row.is_in_trouble());
        rows.sort_by_key(|(_, row)| row.phase != "Failed");
        let rows = rows.into_iter();
        rows.map(|(name, row)| row.table_row(self.short(name), now))
            .collect()
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
        match &self.plans[..] {
            [job] => pod
                .strip_prefix(job.name.as_str())
                .and_then(|rest| rest.strip_prefix('-'))
                .unwrap_or(pod),
            _ => pod,
        }
    }
}

impl ReplicaRow {
    /// Returns the row of the table. The age of a running replica ends `now`.
    pub(super) fn table_row(&self, name: &str, now: Timestamp) -> Row {
        // The end that a restart follows explains the restart.
        let latest = self.end.as_ref().filter(|_| self.is_in_trouble());
        let age = |from: Timestamp| (self.ended.unwrap_or(now).as_second() - from.as_second()).max(0);
        Row {
            name: name.to_owned(),
            phase: vec![self.shown_phase()],
            age: self.started.map(age),
            exit_code: self.exit_code.or(latest.map(|end| end.exit_code)),
            restarts: self.restarts,
        }
    }

    /// Returns the phase in one word.
    pub(super) fn plain_phase(&self) -> &str {
        match (self.stopping, self.stopped) {
            (true, _) => "Stopping",
            (false, true) => "Stopped",
            (false, false) => &self.phase,
        }
    }

    /// Returns the phase, with the delay before a restart.
    fn shown_phase(&self) -> String {
        match (self.plain_phase(), &self.delay) {
            ("Waiting", Some(delay)) => format!("Waiting {delay}"),
            (phase, _) => phase.to_owned(),
        }
    }

    /// Returns true if the replica has failed or does not run although it has or should have.
    fn is_in_trouble(&self) -> bool {
        match self.plain_phase() {
            "Failed" | "Waiting" => true,
            "Pending" => self.restarts > 0 || self.dead_end.is_some(),
            _ => false,
        }
    }
}

fn roles(kind: &Kind) -> Vec<String> {
    let roles = kind.framework.roles.iter();
    roles.map(|role| role.name.to_string()).collect()
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
    /// Records an end of a replica. Returns true for the end that makes a loop.
    fn is_loop(&mut self, replica: &str, end: Option<&str>) -> bool {
        let Some(end) = end else { return false };
        let (last, times) = self.ends.entry(replica.to_owned()).or_default();
        if last != end {
            end.clone_into(last);
            times.clear();
        }
        times.push(Instant::now());
        let first = times.len().checked_sub(LOOP_ENDS).map(|first| times[first]);
        first.is_some_and(|first| first.elapsed() < LOOP_WINDOW) && times.len() == LOOP_ENDS
    }
}

/// Returns the note about a replica that fails in the same way each time. `restarts` are those before this end.
fn loop_note(limit: i64, restarts: i64) -> String {
    let left = limit - restarts;
    match left {
        _ if limit == i64::MAX => {
            " (fails in the same way each time: end the run with Ctrl-C, or set runPolicy.backoffLimit)"
                .to_owned()
        }
        1 => " (fails in the same way each time: 1 more restart, then the job fails)".to_owned(),
        2.. => format!(" (fails in the same way each time: {left} more restarts, then the job fails)"),
        _ => String::new(),
    }
}

/// Returns the latest end of a container that was no success. The cause is added if it never became a process; the
/// output of a process has been printed.
fn latest_end(containers: &[ContainerStatus]) -> Option<End> {
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
    Some(End {
        exit_code: end.exit_code,
        text,
    })
}

/// Returns the delay of a container that waits for its restart.
fn delay(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let message = waiting.message.as_deref()?.strip_prefix("back-off ")?;
    Some(message.split(' ').next()?.to_owned())
}

/// Describes the state of a replica whose job fails after `limit` restarts.
fn describe(row: &ReplicaRow, limit: i64) -> String {
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
        if i64::from(restart) > limit {
            return end.text.clone();
        }
        return match delay.as_str() {
            "0s" => format!("{}; restart {restart}", end.text),
            delay => format!("{}; restart {restart} in {delay}", end.text),
        };
    }
    match (row.phase.as_str(), row.exit_code) {
        ("Failed", Some(code)) => match &row.end {
            Some(end) => format!("Failed: {}", end.text),
            None => format!("Failed with exit code {code}"),
        },
        ("Pending", _) if row.restarts > 0 => format!("Pending, restart {}", row.restarts),
        ("Running", _) if row.restarts > 0 && i64::from(row.restarts) <= limit => {
            format!("Running, restart {}", row.restarts)
        }
        (phase, _) => phase.to_owned(),
    }
}

/// Returns the highest exit code of the containers.
/// Returns the exit code of the framework's container `main`, or the highest one if it has not ended.
fn exit_code(containers: &[ContainerStatus], main: &str) -> Option<i32> {
    let ends = containers
        .iter()
        .filter_map(|c| Some((&c.name, c.state.as_ref()?.terminated.as_ref()?.exit_code)));
    let (_, code) = ends.max_by_key(|(name, code)| (*name == main, *code))?;
    Some(code)
}

fn ended(containers: &[ContainerStatus]) -> Option<Timestamp> {
    let ends = containers
        .iter()
        .filter_map(|c| c.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
    ends.map(|t| t.0).max()
}

#[cfg(test)]
mod tests;
