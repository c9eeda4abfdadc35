//! `training-operator diff`.

mod change;
mod live;
mod markdown;
mod shape;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;
use training_job::Settings;

use crate::check::check;
use crate::cluster;
use crate::exit::{self, Failure};
use crate::settings::SettingsArgs;
use crate::{line_diff, report, write};
use change::{Change, What};

const HELP: &str = "\
A side is a file, a directory, - for standard input, a file or directory of a git revision (REV:path,
from the repository's root), or /dev/null for nothing. Objects that change in the same way stand together.

Examples:
  training-operator diff old.yaml new.yaml
  training-operator diff HEAD:jobs jobs
  training-operator diff origin/main:jobs jobs --format markdown > comment.md
  training-operator diff --cluster job.yaml

With --cluster the old side is what runs: the objects of the jobs of the same names. Of these
only what a job decides is compared, not what the cluster adds. Give the flags that the cluster's
operator has. Pods that a job does not have any more because it has ended are shown as added.

Exit codes:
  0  the jobs get the same
  1  they do not
  2  bad YAML, a job that the operator would refuse, a side that cannot be read, no cluster, or bad usage";

/// Show what changes in the pods and services that jobs get.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The old side, then the new one; with --cluster the new one alone.
    #[arg(value_name = "SIDE", required = true, num_args = 1..=2)]
    pub(crate) sides: Vec<PathBuf>,
    /// Compare with what runs in the cluster.
    #[arg(long)]
    pub(crate) cluster: bool,
    /// How to reach the cluster [default: KUBECONFIG, ~/.kube/config, or the service account of a pod].
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use [default: its current one].
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub(crate) context: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// The operator's settings, which are the same on both sides.
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// How to show changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Unified diffs, coloured on a terminal.
    Text,
    /// A comment for a pull request.
    Markdown,
}

/// Shows what changes in the pods and services that jobs get.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let settings = arguments.settings.read()?;
    let sides = match (&arguments.sides[..], arguments.cluster) {
        ([old, new], false) => side(old, &settings)?.zip(side(new, &settings)?),
        ([new], true) => with_cluster(new, arguments, &settings)?,
        (_, true) => return Err(Failure::new("diff", "--cluster takes one side: what is to be")),
        (_, false) => return Err(Failure::new("diff", "two sides are needed, or --cluster")),
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
        exit::found()
    })
}

/// The objects of one side. `None` if a job is wrong, which has been printed then.
fn side(path: &PathBuf, settings: &Settings) -> Result<Option<Vec<Value>>, Failure> {
    // As in git's diffs: an empty side.
    if path == Path::new("/dev/null") {
        return Ok(Some(Vec::new()));
    }
    let checked = check(std::slice::from_ref(path));
    report::print(&checked.findings);
    if !checked.is_good() {
        return Ok(None);
    }
    let objects = checked.jobs.iter().map(|job| job.render(settings));
    Ok(Some(objects.collect::<Result<Vec<_>, _>>()?.concat()))
}

/// The old side and the new one.
type Sides = (Vec<Value>, Vec<Value>);

/// What runs in the cluster, and what the jobs get.
fn with_cluster(path: &PathBuf, arguments: &Args, settings: &Settings) -> Result<Option<Sides>, Failure> {
    let checked = check(std::slice::from_ref(path));
    report::print(&checked.findings);
    if !checked.is_good() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let compare = async {
        let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
        let (client, server) = cluster::client(kubeconfig, context).await?;
        live::sides(&client, checked.jobs, settings).await.context(server)
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
            What::Added => "is added",
            What::Removed => "is removed",
            What::Changed => "changes",
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
