//! `training-operator convert`: jobs of all older shapes, as jobs of today's.

mod comments;
mod document;
mod exported;
mod kubedl;
mod listed;
mod log;
mod mapped;
mod mpi;
mod mxnet;
mod paddle;
mod policies;
mod template;
mod tree;
mod unknown;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kube_manifest::{Finding, Severity, Source, sources};

use crate::check::DocumentCheck;
use crate::exit::{self, Failure};
use crate::{report, write};

use document::{Problem, convert, documents};
use log::Log;
pub(crate) use policies::POLICIES;
pub(crate) use versions::{Unserved, unserved};

const HELP: &str = "\
Converted are jobs of every version that was released, to kubeflow.org/v1 with a runPolicy:
  MXJob        kubeflow.org/v1alpha1, v1alpha2, v1beta1; MxJob of mxnet.mlkube.io/v1beta1
  TFJob        kubeflow.org/v1alpha1, v1alpha2, v1beta1, v1beta2; TfJob of tensorflow.org and mlkube.io
  PyTorchJob   kubeflow.org/v1alpha1, v1alpha2, v1beta1, v1beta2
  MPIJob       kubeflow.org/v1alpha1, v1alpha2, and the mpi-operator's v2beta1
  XGBoostJob   xgboostjob.kubeflow.org/v1alpha1, v1
  PaddleJob    batch.paddlepaddle.org/v1
  KubeDL's TFJob, PyTorchJob, MPIJob and XGBoostJob of training.kubedl.io/v1alpha1
and those of kubeflow.org/v1 with policies at the top of the spec. Fields that clusters add when they export
an object, and nulls, are left out. All else stays as it is, byte for byte. Comments stay with their fields;
anchors are written out. Each change is logged on standard error, and defaults that were others are written
into the job. What is written passes `validate`; a job that would not is an error.

Examples:
  training-operator convert old.yaml > new.yaml
  training-operator convert jobs/ --in-place
  training-operator convert jobs/ --check
  kubectl get mxjobs.v1beta1.kubeflow.org -o yaml | training-operator convert - | kubectl apply -f -

Exit codes:
  0  all is converted; with --check, nothing would change
  1  a job has what today's kinds have not, or is not valid; with --check, something would change
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
    /// True if a job is in it.
    has_job: bool,
}

/// Converts the jobs in files.
pub(crate) fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let (mut changes, mut has_errors, mut is_unreadable, mut has_job) = (false, false, false, false);
    let mut check = DocumentCheck::new();
    let mut all = String::new();
    for source in sources(&arguments.files) {
        let name = source.name.clone();
        let Some(converted) = file(source, arguments.lossy, &mut check)? else {
            is_unreadable = true;
            continue;
        };
        changes |= converted.changes;
        has_errors |= converted.has_errors;
        has_job |= converted.has_job || converted.has_errors;
        if arguments.in_place {
            if converted.changes && !converted.has_errors {
                replace(Path::new(&name), &converted.text).map_err(|error| Failure::new(&name, error))?;
            }
        } else {
            append(&mut all, &converted.text);
        }
    }
    if !has_job && !is_unreadable {
        report::note("there is no training job in the files: nothing is converted");
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
fn file(source: Source, lossy: bool, check: &mut DocumentCheck) -> Result<Option<Converted>, Failure> {
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
        has_job: false,
    };
    for document in documents(&text) {
        let mut log = Log::new(&source.name, document.lines, lossy);
        let new = match convert(&document, &mut log, check) {
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
        converted.has_job |= log.has_job;
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
