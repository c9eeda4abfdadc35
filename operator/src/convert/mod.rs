//! `training-operator convert`: jobs of all older shapes, as jobs of today's.

mod comments;
mod document;
mod listed;
mod log;
mod mapped;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kube_manifest::{Finding, Severity, Source, sources};

use crate::exit::{self, Failure};
use crate::{report, write};

pub(crate) use document::is_old;
use document::{Problem, convert, documents};
use log::Log;
pub(crate) use mapped::POLICIES;

const HELP: &str = "\
Converted are MXJobs of kubeflow.org/v1alpha1, v1alpha2 and v1beta1, those of v1 as the stand-alone
mxnet-operator had them (policies at the top of the spec), MxJobs of mxnet.mlkube.io/v1beta1, and TfJobs
of mlkube.io/v1beta1: to kubeflow.org/v1 with a runPolicy. All else, today's jobs among it, stays as it is,
byte for byte. Comments stay with their fields; anchors are written out. Each change is told on standard
error, and defaults that were others are written into the job.

Examples:
  training-operator convert old.yaml > new.yaml
  training-operator convert jobs/ --in-place
  training-operator convert jobs/ --check
  kubectl get mxjobs.v1beta1.kubeflow.org -o yaml | training-operator convert - | kubectl apply -f -

Exit codes:
  0  all is converted; with --check, nothing would change
  1  a job has what today's kinds have not; with --check, something would change
  2  a file that cannot be read or written, bad YAML, or bad usage";

/// Turn jobs of older versions and operators into today's.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Files, directories (all *.yaml, *.yml and *.json below them) or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the files anew instead of printing them.
    #[arg(long, conflicts_with = "check")]
    in_place: bool,
    /// Print and write no jobs; tell whether any would change.
    #[arg(long)]
    check: bool,
    /// Leave out, with a warning, what today's kinds have not.
    #[arg(long)]
    lossy: bool,
}

/// What a file becomes.
struct Converted {
    text: String,
    /// Whether it is another than before.
    changes: bool,
    /// Whether a job in it cannot be converted.
    has_errors: bool,
}

/// Converts the jobs in files.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let (mut changes, mut has_errors, mut is_unreadable) = (false, false, false);
    let mut all = String::new();
    for source in sources(&arguments.files) {
        let name = source.name.clone();
        let Some(converted) = file(source, arguments.lossy)? else {
            is_unreadable = true;
            continue;
        };
        changes |= converted.changes;
        has_errors |= converted.has_errors;
        if arguments.in_place {
            if converted.changes && !converted.has_errors {
                replace(Path::new(&name), &converted.text).map_err(|error| Failure::new(&name, error))?;
            }
        } else {
            append(&mut all, &converted.text);
        }
    }
    if is_unreadable {
        return Ok(exit::bad_input());
    }
    if has_errors || arguments.check && changes {
        return Ok(exit::found());
    }
    if !arguments.check {
        write::print(&all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The new text of a file, or nothing if it cannot be read. What is to be told of it is told.
fn file(source: Source, lossy: bool) -> Result<Option<Converted>, Failure> {
    let tell = |at, problem, remedy: &str| {
        report::print(&[Finding {
            severity: Severity::Error,
            file: source.name.clone(),
            at,
            path: String::new(),
            problem,
            remedy: remedy.to_owned(),
        }]);
        Ok(None)
    };
    let text = match source.text {
        Ok(text) => text,
        Err(problem) => return tell(None, problem, ""),
    };
    let mut converted = Converted {
        text: String::new(),
        changes: false,
        has_errors: false,
    };
    for document in documents(&text) {
        let mut log = Log::new(&source.name, document.lines, lossy);
        let new = match convert(&document, &mut log) {
            Ok(new) => new,
            Err(Problem::Output(failure)) => return Err(failure),
            Err(Problem::Syntax(error)) => {
                let mut at = error.at;
                at.line += document.lines;
                return tell(Some(at), error.problem, error.remedy);
            }
        };
        log.findings.sort_by_key(|finding| finding.at);
        report::print_all(&log.findings);
        converted.has_errors |= log.has_errors();
        converted.changes |= new.is_some();
        converted.text += new.as_deref().unwrap_or(document.text);
    }
    Ok(Some(converted))
}

/// Puts a file's text behind others', as a document of its own.
fn append(all: &mut String, text: &str) {
    if !all.is_empty() && !text.is_empty() {
        if !all.ends_with('\n') {
            all.push('\n');
        }
        if !text.starts_with("---") {
            all.push_str("---\n");
        }
    }
    all.push_str(text);
}

/// Writes a file so that it is there with its old text or its new one, whatever happens meanwhile.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // A link stays one.
    let file = fs::canonicalize(file)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".converted");
    let new = file.with_file_name(name);
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::metadata(&file)?.permissions())?;
    fs::rename(&new, &file)
}
