//! `history`: prints the stories that an operator keeps.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use training_job_kubectl::story::{Catalog, Wanted, find};
use training_job_program::variable;
use training_job_review::report::note;
use training_job_review::{Failure, help, write};

/// The exit code of `history show` for a job without a story.
const NO_STORY: u8 = 1;

const LIST_HELP: &str = "\
Examples:
  {program} history list --history /var/lib/history
  kubectl exec deployment/{program} -- /{program} history list --history /var/lib/history

Exit codes:
  0  the stories are listed, or there are none
  2  the directory cannot be read, or bad usage";

const SHOW_HELP: &str = "\
Examples:
  {program} history show train --namespace ml --history /var/lib/history

Exit codes:
  0  the story is printed
  1  there is no such story
  2  the directory cannot be read, or bad usage";

/// The commands that print the stories of finished jobs.
#[derive(Debug, Subcommand)]
pub enum History {
    /// List the finished jobs as JSON.
    List(ListArgs),
    /// Print the story of a job as JSON: of several jobs of the name, that of the job that ended last.
    Show(ShowArgs),
}

/// The flags of `history list`.
#[derive(Debug, clap::Args)]
#[command(after_help = help(LIST_HELP))]
pub struct ListArgs {
    #[command(flatten)]
    place: DirectoryArgs,
    /// Only jobs of this namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

/// The flags of `history show`.
#[derive(Debug, clap::Args)]
#[command(after_help = help(SHOW_HELP))]
pub struct ShowArgs {
    /// The name of the job.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    place: DirectoryArgs,
    /// The namespace of the job.
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// Only a job of this kind, such as MXJob; can be repeated.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only the job of this UID.
    #[arg(long, value_name = "UID")]
    uid: Option<String>,
}

/// The directory of the stories.
#[derive(Debug, clap::Args)]
struct DirectoryArgs {
    /// Directory of the stories: the DIR of the operator's --history.
    #[arg(long, env = variable("HISTORY"), value_name = "DIR")]
    history: PathBuf,
}

impl History {
    /// Runs the command, and returns its exit code.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::List(arguments) => list(arguments),
            Self::Show(arguments) => show(arguments),
        }
    }
}

fn list(arguments: &ListArgs) -> Result<ExitCode, Failure> {
    let directory = &arguments.place.history;
    let listed = Catalog::default().list(directory, arguments.namespace.as_deref());
    let listed = listed.map_err(|error| unreadable(directory, &error))?;
    write::print_json(&listed)?;
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &ShowArgs) -> Result<ExitCode, Failure> {
    let (directory, namespace) = (&arguments.place.history, &arguments.namespace);
    let wanted = Wanted {
        namespace,
        name: &arguments.name,
        kinds: &arguments.kind,
        uid: arguments.uid.as_deref(),
    };
    let found = find(directory, &wanted).map_err(|error| unreadable(directory, &error))?;
    found.problems.iter().for_each(|problem| note(problem));
    match found.story {
        Some(story) => {
            write::print(&story.json())?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            note(&format!("there is no story of {namespace}/{}", arguments.name));
            Ok(ExitCode::from(NO_STORY))
        }
    }
}

fn unreadable(directory: &Path, error: &std::io::Error) -> Failure {
    Failure::new(&format!("--history {}", directory.display()), error)
}
