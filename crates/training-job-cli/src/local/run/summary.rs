//! The text at the end of a run: conditions, root causes of failures, and a table.

use std::fmt::Write as _;

use training_job::api::{ConditionStatus, ConditionType, FailureRecord};
use training_job_local::Run;

use super::progress::{Progress, ReplicaRow};

pub(super) fn text(run: &Run, progress: &Progress) -> String {
    let mut out = String::from("\n");
    for (name, status) in run.statuses() {
        let _ = writeln!(out, "{name}");
        for condition in &status.conditions {
            let mark = if condition.status == ConditionStatus::True {
                "  "
            } else {
                "no"
            };
            let time = condition
                .last_transition_time
                .as_ref()
                .map(|t| t.0.strftime("%H:%M:%S").to_string());
            let _ = writeln!(
                out,
                "  {} {mark} {:<10} {}",
                time.unwrap_or_else(|| " ".repeat(8)),
                condition.type_,
                condition.message
            );
        }
        for failure in &status.failure_history {
            out.push_str(&root_cause("restarted", failure));
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
