//! `diff`.

mod change;
mod live;
mod markdown;
pub(crate) mod planned;
mod shape;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;
use training_job::Settings;

use crate::check::valid_jobs;
use crate::cluster;
use crate::exit::{self, Failure};
use crate::help::help;
use crate::kinds::Kinds;
use crate::settings::SettingsArgs;
use crate::{line_diff, write};
use change::{Change, ChangeType};

const HELP: &str = "\
A side is a file, a directory, - for standard input, a file or directory of a git revision (REV:path,
from the repository's root), or /dev/null for nothing. Objects that change in the same way are shown once.

Examples:
  {program} diff old.yaml new.yaml
  {program} diff HEAD:jobs jobs
  {program} diff origin/main:jobs jobs --format markdown > comment.md
  {program} diff --cluster job.yaml

With --cluster, the old side consists of the objects in the cluster that belong to jobs of the same
names. Only the fields that a job sets are compared, not those that the cluster adds. Set the flags
that the cluster's operator has. Pods that were deleted at the end of a job are shown as added.

Exit codes:
  0  no object differs
  1  objects differ
  2  bad YAML, an invalid job, a side that cannot be read, no cluster, or bad usage";

/// Show how the objects of jobs change.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The old side and the new side; with --cluster, only the new side.
    #[arg(value_name = "SIDE", required = true, num_args = 1..=2)]
    sides: Vec<PathBuf>,
    /// Compare with the objects in the cluster.
    #[arg(long)]
    cluster: bool,
    /// The kubeconfig file [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE", requires = "cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", requires = "cluster")]
    context: Option<String>,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Unified diffs, colored on a terminal.
    Text,
    /// A comment for a pull request.
    Markdown,
}

/// Prints the differences between two sides.
pub(crate) fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let sides = match (&arguments.sides[..], arguments.cluster) {
        ([old, new], false) => side(old, kinds, &settings)?.zip(side(new, kinds, &settings)?),
        ([new], true) => with_cluster(new, arguments, kinds, &settings)?,
        (_, true) => {
            return Err(Failure::new(
                "diff",
                "with --cluster, exactly one side must be given; remove the old side",
            ));
        }
        (_, false) => {
            return Err(Failure::new(
                "diff",
                "two sides must be given; add one, or set --cluster",
            ));
        }
    };
    let Some((old, new)) = sides else {
        return Ok(exit::bad_input());
    };
    let changes = change::changes(&old, &new).map_err(|error| Failure::new("output", error))?;
    match arguments.format {
        Format::Text => write::print_styled(&text(&changes))?,
        Format::Markdown => write::print(&markdown::comment(&changes))?,
    }
    Ok(if changes.is_empty() {
        ExitCode::SUCCESS
    } else {
        exit::check_failed()
    })
}

/// Returns the objects of one side. Returns `None` if a job is invalid; its errors have then been printed.
fn side(path: &PathBuf, kinds: &Kinds, settings: &Settings) -> Result<Option<Vec<Value>>, Failure> {
    // An empty side, as in the diffs of git.
    if path == Path::new("/dev/null") {
        return Ok(Some(Vec::new()));
    }
    let Some(jobs) = valid_jobs(kinds, std::slice::from_ref(path)) else {
        return Ok(None);
    };
    let objects = jobs.iter().map(|job| job.render(settings));
    Ok(Some(objects.collect::<Result<Vec<_>, _>>()?.concat()))
}

type Sides = (Vec<Value>, Vec<Value>);

/// Returns the objects in the cluster, and the objects of the jobs.
fn with_cluster(
    path: &PathBuf,
    arguments: &Args,
    kinds: &Kinds,
    settings: &Settings,
) -> Result<Option<Sides>, Failure> {
    let Some(jobs) = valid_jobs(kinds, std::slice::from_ref(path)) else {
        return Ok(None);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let compare = async {
        let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
        let (client, server) = cluster::client(kubeconfig, context).await?;
        live::sides(&client, jobs, settings).await.context(server)
    };
    let sides = runtime.block_on(compare);
    sides
        .map(Some)
        .map_err(|error| Failure::new("--cluster", format!("{error:#}")))
}

fn text(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let bold = anstyle::Style::new().bold();
        let what = match change.what {
            ChangeType::Added => "is added",
            ChangeType::Removed => "is removed",
            ChangeType::Changed => "changes",
        };
        for title in &change.titles {
            text += &format!("{bold}{title} {what}{bold:#}\n");
        }
        text += &line_diff::styled(&change.diff);
    }
    if !changes.is_empty() {
        text += &format!("{}\n", change::tally(changes));
    }
    text
}
