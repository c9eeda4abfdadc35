//! `convert`: converts jobs of former versions and operators to the current API version.

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
mod ssh;
mod template;
mod tree;
mod unknown;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use document::{Problem, convert, documents};
use kube_manifest::{Finding, Severity, Source, parse, sources};
use log::Log;
use training_job_review::check::DocumentCheck;
use training_job_review::{Failure, Kinds, exit, report, write};

pub use policies::RUN_POLICY_FIELDS;
use training_job_review::help;
pub use versions::unserved;

const HELP: &str = "\
Jobs of every released version are converted to kubeflow.org/v1 with a runPolicy:
  MXJob        kubeflow.org/v1alpha1, v1alpha2, v1beta1; MxJob of mxnet.mlkube.io/v1beta1
  TFJob        kubeflow.org/v1alpha1, v1alpha2, v1beta1, v1beta2; TfJob of tensorflow.org and mlkube.io
  PyTorchJob   kubeflow.org/v1alpha1, v1alpha2, v1beta1, v1beta2
  MPIJob       kubeflow.org/v1alpha1, v1alpha2, and the mpi-operator's v2beta1
  XGBoostJob   xgboostjob.kubeflow.org/v1alpha1, v1
  PaddleJob    batch.paddlepaddle.org/v1
  KubeDL's TFJob, PyTorchJob, MPIJob and XGBoostJob of training.kubedl.io/v1alpha1
and jobs of kubeflow.org/v1 with policies at the top of the spec.

Fields that clusters add to exported objects, and null values, are removed. Everything else is left unchanged,
byte for byte. Comments stay with their fields; anchors are expanded. Each change is logged to standard error.
Defaults that differ from the current ones are written into the job. The result passes `validate`; a job that
would not pass it is an error.

Examples:
  {program} convert old.yaml > new.yaml
  {program} convert jobs/ --in-place
  {program} convert jobs/ --check
  {program} convert mpi.yaml --mpi-ssh > mpi-of-v2beta1.yaml
  kubectl get mxjobs.v1beta1.kubeflow.org -o yaml | {program} convert - | kubectl apply -f -

Exit codes:
  0  all jobs are converted; with --check, no file would change
  1  a job uses a feature that current kinds lack, or is not valid, and its file stays as it is; with --check, a file
     would change
  2  a file cannot be read or written, bad YAML, or bad usage";

/// Convert jobs of former versions and operators to the current API version.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// Files, directories (with all *.yaml, *.yml and *.json files below them), or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Overwrite the files instead of printing the jobs.
    #[arg(long, conflicts_with = "check")]
    in_place: bool,
    /// Write nothing; exit with code 1 if a file would change.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    choices: Choices,
}

/// The choices that a conversion has.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Choices {
    /// Remove fields that current kinds lack, with a warning for each, instead of failing.
    #[arg(long)]
    lossy: bool,
    /// Convert MPIJobs to v2beta1, whose processes start by SSH: their images need sshd.
    #[arg(long)]
    mpi_ssh: bool,
}

/// A file after the conversion.
struct Converted {
    text: String,
    /// True if the text differs from the file's.
    changes: bool,
    /// True if a job in the file cannot be converted.
    has_errors: bool,
    has_job: bool,
}

/// Converts the jobs in files.
pub fn run(arguments: &Args, kinds: &Kinds) -> Result<ExitCode, Failure> {
    let (mut changes, mut has_errors, mut is_unreadable, mut has_job) = (false, false, false, false);
    let mut check = DocumentCheck::new(kinds);
    let mut all = String::new();
    for source in sources(&arguments.files) {
        let name = source.name.clone();
        let Some(converted) = convert_file(source, arguments.choices, &mut check)? else {
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
        report::note("no training job found; nothing was converted");
    }
    if is_unreadable {
        return Ok(exit::bad_input());
    }
    if has_errors || arguments.check && changes {
        return Ok(exit::check_failed());
    }
    if !arguments.check {
        write::print(&all)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Converts a file and prints the findings. Returns `None` if the file cannot be read or parsed.
fn convert_file(
    source: Source,
    choices: Choices,
    check: &mut DocumentCheck,
) -> Result<Option<Converted>, Failure> {
    let is_found = source.is_found();
    let unreadable = |at, problem, remedy: &str| {
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
    let mut converted = Converted {
        text: String::new(),
        changes: false,
        has_errors: false,
        has_job: false,
    };
    // A file of a directory may belong to another program.
    let is_foreign = |text: &str| is_found && !check.names_job(text);
    let text = match source.text {
        Ok(text) => text,
        Err(no_text) if no_text.lossy.as_deref().is_some_and(is_foreign) => return Ok(Some(converted)),
        Err(no_text) => return unreadable(None, no_text.problem, ""),
    };
    if is_foreign(&text) && parse(&text).is_err() {
        return Ok(Some(converted));
    }
    for document in documents(&text) {
        let mut log = Log::new(&source.name, document.lines, choices);
        let new = match convert(&document, &mut log, check) {
            Ok(new) => new,
            Err(Problem::Output(failure)) => return Err(failure),
            Err(Problem::Syntax(error)) => {
                let mut at = error.at;
                at.line += document.lines;
                return unreadable(Some(at), error.problem, error.remedy);
            }
        };
        log.findings.sort_by_key(|finding| finding.at);
        report::print_all(&log.findings);
        report::print_all(&log.left);
        converted.has_errors |= log.has_errors();
        converted.has_job |= log.has_job;
        converted.changes |= new.is_some();
        converted.text += new.as_deref().unwrap_or(document.text);
    }
    Ok(Some(converted))
}

/// Appends the text of a file, as a separate document.
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

/// Replaces the text of a file atomically: if the process is killed, the file has its old text or its new one.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // A symbolic link must stay a link, so its target is replaced.
    let file = fs::canonicalize(file)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".converted");
    let new = file.with_file_name(name);
    fs::write(&new, text)?;
    fs::set_permissions(&new, fs::metadata(&file)?.permissions())?;
    fs::rename(&new, &file)
}
