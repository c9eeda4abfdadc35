//! `status`: a job as a tree.

mod next;
pub(super) mod tree;

use std::process::ExitCode;

use serde::Serialize;
use training_job::api::{FailureRecord, JobCondition, ProgressStatus};
use training_job_review::{Failure, Kinds};

use crate::help;
use crate::job::ViewArgs;
use crate::list::JobRow;
use crate::observe::{ObservedJob, Parts};
use crate::replicas::{RoleView, roles};

const HELP: &str = "\
The tree shows the job's conditions, its replicas with the states of their pods, its failures with their causes, and what
happens next. Equal replicas of a large role are one line; -o wide prints each.

Examples:
  {program} status train
  {program} status mxjob/train -n ml -o wide
  {program} status train -o json

Rights (in the namespace):
  get   jobs
  list  pods
  list  events

Exit codes:
  0  the job is shown, whatever its state
  2  no such job, a cluster that cannot be read, or bad usage";

/// Show a job as a tree: conditions, replicas, restarts with their causes, root cause, and what happens next.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    view: ViewArgs,
}

/// A job as a view of its own.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusView {
    #[serde(flatten)]
    pub(crate) job: JobRow,
    pub(crate) conditions: Vec<JobCondition>,
    /// The progress that the replicas have printed.
    #[serde(rename = "lastProgress", skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<ProgressStatus>,
    pub(crate) role_replicas: Vec<RoleView>,
    /// The failure that restarted or ended the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root_cause: Option<FailureRecord>,
    /// Earlier failures, the latest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier_failures: Vec<FailureRecord>,
    /// Sentences about what happens next, and what a user can do.
    pub(crate) next: Vec<String>,
    /// The errors of an invalid job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    /// The resources that the user may not list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_readable: Vec<&'static str>,
}

impl StatusView {
    /// Derives the view from an observation, without further calls.
    pub(crate) fn new(observed: &ObservedJob) -> Self {
        let status = &observed.job.status;
        let role_replicas = roles(observed);
        let errors = observed.job.outline.as_ref().err();
        Self {
            job: JobRow::new(&observed.job, observed.now),
            conditions: status.conditions.clone(),
            progress: status.progress.clone(),
            next: next::sentences(observed, &role_replicas),
            role_replicas,
            root_cause: status.failure.clone(),
            earlier_failures: status.failure_history.clone(),
            errors: errors
                .into_iter()
                .flat_map(|errors| errors.iter())
                .map(ToString::to_string)
                .collect(),
            not_readable: observed.forbidden.clone(),
        }
    }
}

pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let parts = Parts {
        pods: true,
        events: true,
    };
    let observed = arguments.view.observe(kinds, parts)?;
    let view = StatusView::new(&observed);
    arguments.view.print(&observed.job, &view, |is_wide| {
        tree::text(&view, observed.now, is_wide)
    })
}
