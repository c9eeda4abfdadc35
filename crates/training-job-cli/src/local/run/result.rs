//! `--output json`: what became of the jobs.

use jiff::Timestamp;
use serde::Serialize;
use training_job::api::{FailureRecord, JobCondition};
use training_job_local::Run;

use super::progress::Progress;

/// The result of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunResult<'a> {
    succeeded: bool,
    jobs: Vec<JobResult<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobResult<'a> {
    kind: &'a str,
    name: &'a str,
    /// The type of the latest condition.
    condition: Option<&'a str>,
    restarts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a FailureRecord>,
    /// The conditions in the order in which they became true.
    timeline: Vec<Event<'a>>,
    replicas: Vec<Replica<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    condition: &'a str,
    reason: &'a str,
    message: &'a str,
    time: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replica<'a> {
    name: &'a str,
    role: &'a str,
    phase: &'a str,
    exit_code: Option<i32>,
    restarts: i32,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
}

impl<'a> RunResult<'a> {
    pub(super) fn new(run: &'a Run, progress: &'a Progress) -> Self {
        let jobs = run.statuses().map(|(name, status)| {
            let timeline: Vec<Event<'_>> = progress.conditions(name).into_iter().map(event).collect();
            JobResult {
                kind: progress.plan(name).map_or("", |plan| &plan.kind),
                name,
                condition: timeline.last().map(|event| event.condition),
                restarts: status.restart_count,
                failure: status.failure.as_ref(),
                timeline,
                replicas: replicas(progress, name),
            }
        });
        Self {
            succeeded: run.succeeded(),
            jobs: jobs.collect(),
        }
    }
}

fn event(condition: &JobCondition) -> Event<'_> {
    Event {
        condition: &condition.type_,
        reason: &condition.reason,
        message: &condition.message,
        time: condition.last_transition_time.as_ref().map(|at| at.0),
    }
}

fn replicas<'a>(progress: &'a Progress, job: &str) -> Vec<Replica<'a>> {
    let rows = progress.rows().into_iter();
    let of_job = rows.filter(|(_, row)| row.role.job == job);
    let replica = |(name, row): (&'a String, &'a super::progress::ReplicaRow)| Replica {
        name,
        role: &row.role.role,
        phase: row.plain_phase(),
        exit_code: row.exit_code,
        restarts: row.restarts,
        started: row.started,
        ended: row.ended,
    };
    of_job.map(replica).collect()
}
