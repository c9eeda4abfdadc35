//! The text at the end of a run (conditions, root causes of failures, and a table), and the jobs' lines while it runs.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use training_job::api::{ConditionType, FailureRecord, JobCondition, JobStatus};
use training_job_local::Run;

use super::progress::Progress;
use super::table::{self, JobLine};

pub(super) fn text(run: &Run, progress: &Progress) -> String {
    let mut causes = String::new();
    for (name, status) in run.statuses() {
        let _ = writeln!(causes, "{name}");
        causes.push_str(&timeline(&progress.conditions(name), status.is_finished()));
        causes.push_str(&failures(status));
    }
    let lines = table(progress);
    let rows: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // A long table would scroll the causes away.
    match lines.len() > MAX_ROWS {
        true => format!("\n{rows}\n{causes}"),
        false => format!("\n{causes}\n{rows}"),
    }
}

/// The rows of the table at the end before the replicas of a role are grouped.
const MAX_ROWS: usize = 16;

/// Returns the root causes of the restarts and of the end. Those that are equal and follow each other are one.
fn failures(status: &JobStatus) -> String {
    let all: Vec<_> = status
        .failure_history
        .iter()
        .chain(&status.failure)
        .map(without_limit)
        .collect();
    let limit = status
        .failure
        .as_ref()
        .and_then(|failure| failure.message.split_once(LAST_FAILURE));
    let has_failed = status.failure.is_some() && status.is(ConditionType::Failed);
    let mut remaining = all.len();
    let same = |a: &FailureRecord, b: &FailureRecord| root_cause("", a) == root_cause("", b);
    let groups = all.chunk_by(same).map(|group| {
        remaining -= group.len();
        let is_end = has_failed && remaining == 0;
        let restarted = match group.len() - usize::from(is_end) {
            0 => "",
            1 => "restarted",
            times => &format!("restarted {times} times"),
        };
        let title = match (restarted, is_end) {
            ("", _) => "failed",
            (_, true) => &format!("{restarted}, then failed"),
            (_, false) => restarted,
        };
        let cause = root_cause(title, &group[0]);
        match limit.filter(|_| is_end) {
            Some((limit, _)) => cause.replacen('\n', &format!("; {limit}\n"), 1),
            None => cause,
        }
    });
    groups.collect()
}

/// The words between the limit and the failure that exceeded it in the message of a failed job.
const LAST_FAILURE: &str = "; the last failure: ";

/// Returns the failure itself, without the limit that it exceeded.
fn without_limit(failure: &FailureRecord) -> FailureRecord {
    let mut failure = failure.clone();
    if let Some((_, message)) = failure.message.split_once(LAST_FAILURE) {
        // The usual reason stands where there was no output.
        failure.message = if message == "Error" { "" } else { message }.to_owned();
        if failure.exit_code.is_some() {
            failure.reason = "Error".to_owned();
        }
    }
    failure
}

/// Returns a line for each condition in the order in which they became true, in local time, and the duration of a job
/// that has ended.
fn timeline(conditions: &[&JobCondition], is_finished: bool) -> String {
    let mut out = String::new();
    let times: Vec<_> = conditions
        .iter()
        .map(|c| c.last_transition_time.as_ref().map(|at| at.0))
        .collect();
    for (n, (condition, time)) in conditions.iter().zip(&times).enumerate() {
        let local = time.map(|time| time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string());
        let local = local.unwrap_or_default();
        let _ = write!(out, "  {local:8} {:<10} {}", condition.type_, condition.message);
        if is_finished
            && n + 1 == conditions.len()
            && let (Some(Some(begin)), Some(end)) = (times.first(), time)
        {
            let seconds = end.duration_since(*begin).as_secs_f64();
            let _ = match seconds < 10.0 {
                true => write!(out, " ({seconds:.1} s)"),
                false => write!(out, " ({seconds:.0} s)"),
            };
        }
        out.push('\n');
    }
    out
}

/// Returns the cause of a failure: `failed: train-worker-1 (container main) exited with 3`, and the container's last output
/// below it.
fn root_cause(title: &str, failure: &FailureRecord) -> String {
    let mut out = format!("  {title}: ");
    if let Some(pod) = &failure.pod {
        out.push_str(pod);
        if let Some(container) = &failure.container {
            let _ = write!(out, " (container {container})");
        }
    }
    if let Some(code) = failure.exit_code {
        let _ = write!(out, " exited with {code}");
    }
    if let Some(signal) = failure.signal {
        let _ = write!(out, " (signal {signal})");
    }
    match (&failure.pod, failure.exit_code, failure.reason.as_str()) {
        (_, Some(_), "Error") => {}
        (None, None, reason) => out.push_str(reason),
        (_, _, reason) => {
            let _ = write!(out, ", {reason}");
        }
    }
    out.push('\n');
    for line in failure.message.lines() {
        let _ = writeln!(out, "    | {line}");
    }
    out
}

/// Returns the table of all replicas.
pub(super) fn table(progress: &Progress) -> Vec<String> {
    let now = Timestamp::now();
    let rows = progress.rows();
    if rows.len() > MAX_ROWS {
        return table::full(&[progress.role_rows(), progress.troubled_rows()].concat());
    }
    let rows = rows
        .iter()
        .map(|(name, row)| row.table_row(progress.short(name), now));
    table::full(&rows.collect::<Vec<_>>())
}

/// Returns the lines of the jobs above the live table. The run ends at `end`, if any.
pub(super) fn job_lines(run: &Run, progress: &Progress, end: Option<Timestamp>) -> Vec<JobLine> {
    let now = Timestamp::now();
    let line = |(name, status): (&str, &JobStatus)| {
        let conditions = progress.conditions(name);
        let time = |condition: &&JobCondition| condition.last_transition_time.as_ref().map(|at| at.0);
        let ended = conditions.last().and_then(time).filter(|_| status.is_finished());
        let started = status.start_time.as_ref().map(|at| at.0);
        let plan = progress.plan(name);
        let deadline = plan.and_then(|plan| {
            let after = SignedDuration::from_secs(plan.deadline_seconds?);
            started?.checked_add(after).ok()
        });
        let stop = deadline.into_iter().chain(end).min().filter(|_| ended.is_none());
        let seconds = |from: Timestamp, to: Timestamp| (to.as_second() - from.as_second()).max(0);
        let begin = conditions.first().and_then(time).unwrap_or(now);
        JobLine {
            name: name.to_owned(),
            state: conditions.last().map(|c| c.type_.clone()).unwrap_or_default(),
            elapsed: seconds(begin, ended.unwrap_or(now)),
            restarts: status.restart_count,
            backoff_limit: plan.and_then(|plan| plan.backoff_limit),
            left: stop.map(|stop| seconds(now, stop)),
        }
    };
    run.statuses().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exit(code: i32) -> FailureRecord {
        FailureRecord {
            pod: Some("train-worker-0".to_owned()),
            exit_code: Some(code),
            reason: "Error".to_owned(),
            ..FailureRecord::default()
        }
    }

    #[test]
    fn equal_causes_are_named_once() {
        for (codes, type_, text) in [
            (&[3][..], "Failed", "  failed: train-worker-0 exited with 3\n"),
            (
                &[3, 3],
                "Failed",
                "  restarted, then failed: train-worker-0 exited with 3\n",
            ),
            (
                &[3, 3, 3],
                "Failed",
                "  restarted 2 times, then failed: train-worker-0 exited with 3\n",
            ),
            (
                &[3, 3],
                "Running",
                "  restarted 2 times: train-worker-0 exited with 3\n",
            ),
            (
                &[3, 1],
                "Failed",
                "  restarted: train-worker-0 exited with 3\n  failed: train-worker-0 exited with 1\n",
            ),
            (&[3], "Succeeded", "  restarted: train-worker-0 exited with 3\n"),
        ] {
            let (last, history) = codes.split_last().unwrap();
            let status = JobStatus {
                failure: Some(exit(*last)),
                failure_history: history.iter().map(|code| exit(*code)).collect(),
                conditions: vec![
                    serde_json::from_value(
                        json!({"type": type_, "status": "True", "reason": "", "message": ""}),
                    )
                    .unwrap(),
                ],
                ..JobStatus::default()
            };
            assert_eq!(failures(&status), text, "{codes:?} {type_}");
        }
    }

    #[test]
    fn the_limit_and_the_failure_that_exceeded_it_are_one_cause() {
        let failed = json!({"type": "Failed", "status": "True", "reason": "", "message": ""});
        let last = FailureRecord {
            reason: "BackoffLimitExceeded".to_owned(),
            message: "backoffLimit 1 is used up; the last failure: rank 1\nsecond".to_owned(),
            ..exit(1)
        };
        let earlier = FailureRecord {
            message: "rank 1\nsecond".to_owned(),
            ..exit(1)
        };
        let status = JobStatus {
            failure: Some(last),
            failure_history: vec![earlier],
            conditions: vec![serde_json::from_value(failed).unwrap()],
            ..JobStatus::default()
        };
        assert_eq!(
            failures(&status),
            "  restarted, then failed: train-worker-0 exited with 1; backoffLimit 1 is used up\n    | rank 1\n    | second\n"
        );
    }
}
