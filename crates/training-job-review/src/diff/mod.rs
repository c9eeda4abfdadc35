//! `diff`.

mod job;
mod markdown;
mod objects;
mod planned;
mod shape;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kube_manifest::{Severity, is_missing};

use crate::check::{Job, check, valid_jobs};
use crate::exit::{self, Failure};
use crate::help::help;
use crate::kinds::Kinds;
use crate::settings::SettingsArgs;
use crate::{report, write};

pub use job::{JobSide, Rules, title};
pub use planned::planned_objects;
pub use shape::reduced_to;

/// The help of the command. Its last parts are the examples and the exit codes.
pub const HELP: &str = "\
For each job, first the values that its author decides are compared, then the rules that `explain` shows, then the
objects. Values that equal the default are no difference. Objects that change in the same way are shown once.

A side is a file, a directory, - for standard input, a file or directory of a git revision, or /dev/null for nothing.
In REV:path, the path is from the repository's root, or from here if it begins with . or .. (REV:. is this directory).
An old side that does not exist is empty if the working tree or the new side has the path, and invalid jobs of the old
side are left out, each with a note.

Examples:
  {program} diff old.yaml new.yaml
  {program} diff HEAD:jobs jobs
  {program} diff origin/main:jobs jobs --output markdown > comment.md

Exit codes:
  0  no job differs
  1  jobs differ
  2  bad YAML, an invalid job, a side that cannot be read, or bad usage";

/// Show how the rules and objects of jobs change.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The old side and the new side.
    #[arg(value_name = "SIDE", required = true, num_args = 2)]
    sides: Vec<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// The flags that do not depend on where the sides come from.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The format of the output.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// The settings of the operator.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Unified diffs, colored on a terminal.
    Text,
    /// A comment for a pull request.
    Markdown,
}

/// Prints the differences between two sides.
///
/// # Errors
/// The settings cannot be read, or a job is invalid with them.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    match &arguments.sides[..] {
        [old, new] => between(old, new, &arguments.options, kinds),
        _ => Err(Failure::new("diff", "two sides must be given")),
    }
}

/// Prints the differences between the jobs of two files, directories or revisions.
///
/// # Errors
/// The settings cannot be read, or a job is invalid with them.
pub fn between(old: &PathBuf, new: &PathBuf, options: &Options, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let settings = options.settings.read()?;
    let mut notes = Vec::new();
    let Some((old, new)) = old_jobs((old, new), kinds, &mut notes).zip(new_jobs(new, kinds)) else {
        return Ok(exit::bad_input());
    };
    let mut sides = job::titled([old, new]);
    job::remove_equal(&mut sides);
    let [old, new] = sides.each_ref().map(|side| job::side(side, &settings));
    print((&old?, &new?), options, &notes)
}

/// Prints the differences between an old and a new side, after notes about the old one.
///
/// # Errors
/// The output cannot be written.
pub fn print(
    (old, new): (&[JobSide], &[JobSide]),
    options: &Options,
    notes: &[String],
) -> Result<ExitCode, Failure> {
    let changes = job::changes(old, new)?;
    match options.output {
        Format::Text => write::print_styled(&text::text(&changes))?,
        Format::Markdown => write::print(&markdown::comment(&changes, notes))?,
    }
    Ok(if changes.is_empty() {
        ExitCode::SUCCESS
    } else {
        exit::check_failed()
    })
}

/// Returns the jobs of the new side. Returns `None` if a job is invalid; its errors have then been printed.
fn new_jobs(path: &PathBuf, kinds: &Kinds) -> Option<Vec<Job>> {
    // An empty side, as in the diffs of git.
    if path == Path::new("/dev/null") {
        return Some(Vec::new());
    }
    valid_jobs(kinds, std::slice::from_ref(path))
}

/// Returns the jobs of the old side. It may lack the path, if the change adds the path, and may have invalid jobs, if
/// the change mends them; each is added to the notes. Returns `None` if a file cannot be read.
fn old_jobs((old, new): (&PathBuf, &Path), kinds: &Kinds, notes: &mut Vec<String>) -> Option<Vec<Job>> {
    if old == Path::new("/dev/null") {
        return Some(Vec::new());
    }
    if is_missing(old, new) {
        let note = format!("{} does not exist; the old side is empty", old.display());
        report::note(&note);
        notes.push(note);
        return Some(Vec::new());
    }
    let mut checked = check(kinds, std::slice::from_ref(old));
    if !checked.is_unreadable {
        for finding in checked
            .findings
            .iter_mut()
            .filter(|f| f.severity == Severity::Error)
        {
            finding.severity = Severity::Note;
            finding.problem = format!("left out of the old side: {}", finding.problem);
            notes.push(format!("{}: {}", finding.place(), finding.message()));
        }
    }
    report::print(&checked.findings);
    (!checked.is_unreadable).then_some(checked.jobs)
}
