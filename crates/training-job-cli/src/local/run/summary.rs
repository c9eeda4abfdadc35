//! The text at the end of a run: conditions, root causes of failures, and a table.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use training_job::api::{ConditionType, FailureRecord, JobCondition};
use training_job_local::Run;

use super::progress::{Progress, ReplicaRow};

pub(super) fn text(run: &Run, progress: &Progress) -> String {
    let mut out = String::from("\n");
    for (name, status) in run.statuses() {
        let _ = writeln!(out, "{name}");
        out.push_str(&timeline(&progress.conditions(name), status.is_finished()));
        let same = |a: &FailureRecord, b: &FailureRecord| root_cause("", a) == root_cause("", b);
        for failures in status.failure_history.chunk_by(same) {
            let title = match failures.len() {
                1 => "restarted".to_owned(),
                times => format!("restarted {times} times"),
            };
            out.push_str(&root_cause(&title, &failures[0]));
        }
        if let Some(failure) = &status.failure {
            let title = if status.is(ConditionType::Failed) {
                "failed"
            } else {
                "restarted"
            };
            out.push_str(&root_cause(title, failure));
        }
    }
    out.push('\n');
    for line in table(progress) {
        let _ = writeln!(out, "{line}");
    }
    out
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
            let _ = write!(out, " ({} s)", end.as_second() - begin.as_second());
        }
        out.push('\n');
    }
    out
}

fn root_cause(title: &str, failure: &FailureRecord) -> String {
    let mut out = format!(
        "  {title} because of {}",
        failure.pod.as_deref().unwrap_or("the job itself")
    );
    if let Some(container) = &failure.container {
        let _ = write!(out, ", container {container}");
    }
    if let Some(code) = failure.exit_code {
        let _ = write!(out, ", exit code {code}");
    }
    if let Some(signal) = failure.signal {
        let _ = write!(out, " (signal {signal})");
    }
    let _ = writeln!(out, ", {}", failure.reason);
    for line in failure.message.lines() {
        let _ = writeln!(out, "    | {line}");
    }
    out
}

/// Returns the header of [`line()`].
fn header() -> String {
    format!(
        "{:<24} {:<10} {:>6} {:>5} {:>9}",
        "REPLICA", "PHASE", "AGE", "EXIT", "RESTARTS"
    )
}

/// Returns a replica's row of the table. The age of a running replica ends `now`.
fn line(name: &str, row: &ReplicaRow, now: jiff::Timestamp) -> String {
    let age = row
        .started
        .map(|from| (row.ended.unwrap_or(now).as_second() - from.as_second()).max(0));
    format!(
        "{:<24} {:<10} {:>6} {:>5} {:>9}",
        name,
        if row.stopping {
            "Stopping"
        } else if row.stopped {
            "Stopped"
        } else {
            &row.phase
        },
        age.map(|s| format!("{s}s")).unwrap_or_default(),
        row.exit_code.map(|c| c.to_string()).unwrap_or_default(),
        row.restarts,
    )
}

/// Returns the lines of the table of all replicas.
pub(super) fn table(progress: &Progress) -> Vec<String> {
    let now = jiff::Timestamp::now();
    let rows = progress.rows();
    let rows = rows
        .iter()
        .map(|(name, row)| line(progress.short(name), row, now));
    std::iter::once(header()).chain(rows).collect()
}
