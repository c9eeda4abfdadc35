//! `list`: one line for each job.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use training_job_review::duration::short_time;
use training_job_review::report::note;
use training_job_review::table::Table;
use training_job_review::{Failure, Kind, Kinds, write};

use crate::connection::{ConnectionArgs, connect, namespace};
use crate::help;
use crate::history::{self, HistoryArgs};
use crate::observe;
use crate::output::{Output, print_value};
use crate::situation::{RoleCount, state_of_argument};
use crate::stored::{StoredJob, resource_name};
use crate::story::{RoleSummary, Summary};

const HELP: &str = "\
READY counts the replicas of a role that are ready, or that run if no role of the kind waits for readiness. WHY is the
root cause of a failed job, the failure after which a running job restarted, or the reason why no replica runs. Kinds
that are not installed are left out.

Examples:
  {program} list
  {program} list mxjob pytorchjob -n ml
  {program} list -A -l team=vision -o wide
  {program} list -A --state Failed -o name
  {program} list --finished --history /mnt/history

The jobs of --history are listed also if the cluster cannot be read.

Rights (in the namespace, or in all with -A):
  list  jobs

Exit codes:
  0  the jobs are listed, or there are none
  2  a cluster that cannot be read, or bad usage";

/// List jobs of all kinds: state, ready replicas, restarts, age, duration, and why they wait or failed.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    /// Only jobs of these kinds.
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,
    /// The jobs of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only jobs with these labels, such as team=vision.
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "HistoryArgs")]
    selector: Option<String>,
    /// Only jobs in these states, such as Failed; can be repeated.
    #[arg(long, value_name = "STATE", value_parser = state_of_argument)]
    state: Vec<String>,
    /// Only jobs that have succeeded or failed.
    #[arg(long)]
    finished: bool,
    #[command(flatten)]
    history: HistoryArgs,
    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    connection: ConnectionArgs,
}

impl Args {
    fn is_filtered(&self) -> bool {
        !self.kinds.is_empty() || self.selector.is_some() || !self.state.is_empty() || self.finished
    }
}

/// A job as a line of the list.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobRow {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) roles: Vec<RoleCount>,
    pub(crate) restarts: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restart_limit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finished: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_seconds: Option<i64>,
    /// The progress in a few characters, if it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) progress: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
    /// The resource and name, as kubectl prints them.
    pub(crate) resource: String,
    /// True if the cluster was read and lacks the job.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_deleted: bool,
    /// True if the job is known from the history alone.
    #[serde(skip)]
    pub(crate) is_of_history: bool,
    #[serde(skip)]
    pub(crate) uid: String,
    #[serde(skip)]
    pub(crate) age_seconds: Option<i64>,
}

impl JobRow {
    pub(crate) fn new(job: &StoredJob, now: Timestamp) -> Self {
        let status = &job.status;
        Self {
            kind: job.kind.name().to_owned(),
            namespace: job.namespace().to_owned(),
            name: job.name().to_owned(),
            state: job.state().to_owned(),
            roles: job.role_counts(),
            restarts: status.restart_count,
            restart_limit: job.restart_limit(),
            created: job.created(),
            started: status.start_time.as_ref().map(|time| time.0),
            finished: status.completion_time.as_ref().map(|time| time.0),
            duration_seconds: job.duration(now),
            progress: job.progress(now),
            why: job.why(),
            resource: job.resource_name(),
            is_deleted: false,
            is_of_history: false,
            uid: job.uid().to_owned(),
            age_seconds: job.age(now),
        }
    }

    /// Returns the row of a job in the history.
    pub(crate) fn of_summary(job: &Summary, kind: &Kind, now: Timestamp) -> Self {
        let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs().max(0);
        let ended = job.finished_at.unwrap_or(job.observed_at);
        // A story has the roles in lower case.
        let name = |slug: &str| {
            let mut roles = kind.framework.roles.iter().map(|role| role.name);
            roles
                .find(|name| name.eq_ignore_ascii_case(slug))
                .unwrap_or(slug)
                .to_owned()
        };
        let role = |role: &RoleSummary| RoleCount {
            role: name(&role.role),
            ready: 0,
            replicas: role.replicas,
            succeeded: role.succeeded,
            failed: role.failed,
        };
        Self {
            kind: job.kind.clone(),
            namespace: job.namespace.clone(),
            name: job.name.clone(),
            state: job.state.clone(),
            roles: job.roles.iter().map(role).collect(),
            restarts: job.restarts,
            restart_limit: job.restart_limit.and_then(|limit| i32::try_from(limit).ok()),
            created: Some(job.created_at),
            started: job.started_at,
            finished: job.finished_at,
            duration_seconds: job.started_at.map(|start| seconds(start, ended)),
            progress: String::new(),
            why: job.why.clone(),
            resource: resource_name(&kind.resource, &job.name),
            is_deleted: true,
            is_of_history: true,
            uid: job.uid.clone(),
            age_seconds: Some(seconds(job.created_at, now)),
        }
    }

    /// Returns `2/3`, or `2` if restarts have no limit.
    pub(crate) fn restarts(&self) -> String {
        match (self.restarts, self.restart_limit) {
            (restarts, Some(limit)) => format!("{restarts}/{limit}"),
            (restarts, None) => restarts.to_string(),
        }
    }
}

/// Returns the jobs as a table. The namespace is a column if jobs of all namespaces are listed.
pub(crate) fn table(rows: &[JobRow], has_namespace: bool, is_wide: bool) -> String {
    let mut table = Table::new(&[
        "NAMESPACE",
        "KIND",
        "NAME",
        "STATE",
        "READY",
        "RESTARTS",
        "AGE",
        "DURATION",
        "PROGRESS",
        "WHY",
        "STARTED",
        "FINISHED",
    ]);
    let text = |seconds: Option<i64>| seconds.map(short_time).unwrap_or_default();
    let wide = |time: Option<Timestamp>| {
        time.filter(|_| is_wide)
            .map(|time| time.to_string())
            .unwrap_or_default()
    };
    for row in rows {
        table.row([
            match has_namespace {
                true => row.namespace.clone(),
                false => String::new(),
            },
            row.kind.clone(),
            row.name.clone(),
            row.state.clone(),
            ready(&row.roles, is_wide),
            row.restarts(),
            text(row.age_seconds),
            text(row.duration_seconds),
            row.progress.clone(),
            match is_wide {
                true => row.why.clone(),
                false => shortened(&row.why),
            },
            wide(row.started),
            wide(row.finished),
        ]);
    }
    table.to_string()
}

/// The most roles that the narrow table has one by one.
const MAX_LISTED_ROLES: usize = 5;

/// Returns the counts of roles, or their sum if there are many roles and the table is narrow.
fn ready(roles: &[RoleCount], is_wide: bool) -> String {
    if !is_wide && roles.len() > MAX_LISTED_ROLES {
        let sum = |of: fn(&RoleCount) -> i32| roles.iter().map(of).fold(0, i32::saturating_add);
        let all = RoleCount {
            role: format!("{} roles", roles.len()),
            ready: sum(|role| role.ready),
            replicas: roles.iter().map(|role| role.replicas).sum(),
            succeeded: sum(|role| role.succeeded),
            failed: sum(|role| role.failed),
        };
        return all.text();
    }
    let texts: Vec<String> = roles.iter().map(RoleCount::text).collect();
    texts.join(", ")
}

const MAX_WHY: usize = 60;

/// Returns the beginning of a reason that would make a line too long.
fn shortened(why: &str) -> String {
    match why.char_indices().nth(MAX_WHY) {
        Some((end, _)) => format!("{}…", &why[..end]),
        None => why.to_owned(),
    }
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let mut wanted = Vec::new();
    for name in &arguments.kinds {
        let kind = kinds.of_argument(name).ok_or_else(|| {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            Failure::new(
                "KIND",
                format!("unknown kind {name:?}; use one of {}", names.join(", ")),
            )
        })?;
        wanted.push(kind);
    }
    if wanted.is_empty() {
        wanted = kinds.to_vec();
    }
    let read = connect(&arguments.connection, async |connection| {
        let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
        let (jobs, denied) = observe::list(
            &connection.client,
            namespace,
            arguments.selector.as_deref(),
            &wanted,
        )
        .await?;
        Ok((jobs, denied, namespace.map(str::to_owned)))
    });
    let (jobs, denied, namespace, failure) = match read {
        Ok((jobs, denied, namespace)) => (jobs, denied, namespace, None),
        Err(failure) if arguments.history.is_selected() => {
            let namespace = (!arguments.all_namespaces).then(|| namespace(&arguments.connection));
            (Vec::new(), Vec::new(), namespace, Some(failure))
        }
        Err(failure) => return Err(failure),
    };
    let listed = arguments.history.list(namespace.as_deref())?.unwrap_or_default();
    if let Some(failure) = &failure {
        let cause = failure.to_string();
        note(&format!(
            "only the history is listed, because the cluster cannot be read: {}",
            cause.trim_start_matches("error: ")
        ));
    }
    let now = Timestamp::now();
    let mut rows: Vec<JobRow> = jobs.iter().map(|job| JobRow::new(job, now)).collect();
    history::report_problems(&listed.problems);
    rows.extend(deleted(&listed.jobs, &wanted, &rows, failure.is_none(), now));
    if arguments.finished {
        rows.retain(|row| matches!(&*row.state, "Succeeded" | "Failed"));
    }
    if !arguments.state.is_empty() {
        rows.retain(|row| arguments.state.contains(&row.state));
    }
    rows.sort_by(|a, b| (&a.namespace, &a.name, &a.kind).cmp(&(&b.namespace, &b.name, &b.kind)));
    if !denied.is_empty() {
        note(&format!(
            "left out, because you are not allowed to list them: {}",
            denied.join(", ")
        ));
    }
    match arguments.output {
        Output::Name => {
            let names: String = rows.iter().map(|row| format!("{}\n", row.resource)).collect();
            write::print(&names)?;
        }
        Output::Json | Output::Yaml => print_value(arguments.output, &serde_json::json!({"jobs": rows}))?,
        Output::Text | Output::Wide if rows.is_empty() => {
            let jobs = match arguments.is_filtered() {
                true => "no such jobs",
                false => "no jobs",
            };
            match &namespace {
                Some(namespace) => note(&format!(
                    "{jobs} in namespace {namespace}; -A lists those of all namespaces"
                )),
                None => note(&format!("{jobs} in any namespace")),
            }
        }
        Output::Text | Output::Wide => {
            write::print(&table(
                &rows,
                namespace.is_none(),
                arguments.output == Output::Wide,
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the rows of the finished jobs of these kinds that are not among `current`, the jobs of the cluster if it was
/// read.
pub(super) fn deleted(
    finished: &[Summary],
    kinds: &[Arc<Kind>],
    current: &[JobRow],
    is_read: bool,
    now: Timestamp,
) -> Vec<JobRow> {
    let current: BTreeSet<&str> = current.iter().map(|row| row.uid.as_str()).collect();
    let row = |job: &Summary| {
        let kind = kinds.iter().find(|kind| kind.name() == job.kind)?;
        let row = JobRow::of_summary(job, kind, now);
        (!current.contains(job.uid.as_str())).then_some(JobRow {
            is_deleted: is_read,
            ..row
        })
    };
    finished.iter().filter_map(row).collect()
}
