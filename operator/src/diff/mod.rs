//! `training-operator diff`.

mod change;
mod live;
mod markdown;
mod shape;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::Value;

use crate::check::check;
use crate::cli::{Diff, DiffFormat};
use crate::cluster;
use crate::exit::{self, Failure};
use crate::{finding, line_diff, write};
use change::{Change, What};

/// Shows what changes in what jobs get.
pub(crate) fn run(arguments: &Diff) -> Result<ExitCode, Failure> {
    let sides = match (&arguments.sides[..], arguments.cluster) {
        ([old, new], false) => side(old)?.zip(side(new)?),
        ([new], true) => with_cluster(new, arguments)?,
        (_, true) => return Err(Failure::new("diff", "--cluster takes one side: what is to be")),
        (_, false) => return Err(Failure::new("diff", "two sides are needed, or --cluster")),
    };
    let Some((old, new)) = sides else {
        return Ok(exit::bad_input());
    };
    let changes = change::changes(&old, &new).map_err(|error| Failure::new("output", error))?;
    match arguments.format {
        DiffFormat::Text => write::print_styled(&text(&changes))?,
        DiffFormat::Markdown => write::print(&markdown::comment(&changes))?,
    }
    Ok(if changes.is_empty() {
        ExitCode::SUCCESS
    } else {
        exit::found()
    })
}

/// The objects of one side; none if its jobs are wrong, of which is told.
fn side(path: &PathBuf) -> Result<Option<Vec<Value>>, Failure> {
    // As in git's own diffs: a side on which there is nothing.
    if path == Path::new("/dev/null") {
        return Ok(Some(Vec::new()));
    }
    let checked = check(std::slice::from_ref(path));
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(None);
    }
    let objects = checked.jobs.iter().map(|job| job.render());
    Ok(Some(objects.collect::<Result<Vec<_>, _>>()?.concat()))
}

/// The old side and the new one.
type Sides = (Vec<Value>, Vec<Value>);

/// What runs, and what is to be.
fn with_cluster(path: &PathBuf, arguments: &Diff) -> Result<Option<Sides>, Failure> {
    let checked = check(std::slice::from_ref(path));
    finding::print(&checked.findings);
    if !checked.is_good() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let compare = async {
        let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
        let (client, server) = cluster::client(kubeconfig, context).await?;
        live::sides(&client, checked.jobs).await.context(server)
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
