//! `new-kind`: writes the package of an operator for a new kind of job.
//!
//! The template is `examples/add-a-framework`, with other names. So it is built and tested with each change of the library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kube_schema::names;
use training_job_review::{Failure, help, write};

const HELP: &str = "\
The package has a program with all commands of an operator, a kind with a head and workers to change into yours, a job,
and tests: a story of a job's life, snapshots of what jobs get, the definition, and a run on this machine.
docs/authors/add-a-framework.md explains every line of it.

Examples:
  {program} new-kind HiveJob hive-operator
  {program} new-kind HiveJob hive-operator --group hive.example.org

Exit codes:
  0  success
  2  the directory exists, the files cannot be written, or bad usage";

/// Write the package of an operator for a new kind of job.
#[derive(Debug, clap::Args)]
#[command(after_help = help(HELP))]
pub struct Args {
    /// The kind of job, such as HiveJob.
    #[arg(value_name = "KIND", value_parser = kind)]
    kind: Kind,
    /// The directory of the package, which must not exist or be empty.
    directory: PathBuf,
    /// The API group of the kind, a domain that you own.
    #[arg(long, value_name = "DOMAIN", default_value = "example.com", value_parser = group)]
    group: String,
    /// A local copy of this repository, from which the package takes the library.
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
}

/// The name of a kind.
#[derive(Clone, Debug)]
struct Kind {
    /// Without `Job`, such as `Hive`.
    stem: String,
}

/// The maximum length of a kind's name without `Job`. Its port is named after it, and may have 15 characters.
const MAX_STEM_CHARS: usize = 10;

fn kind(text: &str) -> Result<Kind, String> {
    let stem = text.strip_suffix("Job").unwrap_or_default();
    let is_camel_case = stem.starts_with(|c: char| c.is_ascii_uppercase())
        && stem.chars().all(|c| c.is_ascii_alphanumeric())
        && stem.len() <= MAX_STEM_CHARS;
    match is_camel_case {
        true => Ok(Kind {
            stem: stem.to_owned(),
        }),
        false => Err(format!(
            "must be 1 to {MAX_STEM_CHARS} letters and digits followed by Job, with a capital letter first, such as HiveJob"
        )),
    }
}

fn group(text: &str) -> Result<String, String> {
    match names::subdomain(text) {
        None if text.contains('.') => Ok(text.to_owned()),
        None => Err("must be a domain, such as example.com".to_owned()),
        Some(why) => Err(why),
    }
}

/// The files of the package and their texts in the template.
const FILES: [(&str, &str); 16] = [
    (".gitignore", include_str!("template/gitignore.txt")),
    ("Cargo.toml", include_str!("template/manifest.toml")),
    ("Dockerfile", include_str!("template/Dockerfile")),
    ("README.md", include_str!("template/readme.md")),
    ("crd.yaml", include_str!("template/crd.yaml")),
    ("src/job.rs", include_str!("template/src_job.rs")),
    ("src/lib.rs", include_str!("template/src_lib.rs")),
    ("src/main.rs", include_str!("template/src_main.rs")),
    ("jobs/farm.py", include_str!("template/jobs_farm.py")),
    ("jobs/primes.yaml", include_str!("template/jobs_primes.yaml")),
    ("jobs/headless.yaml", include_str!("template/jobs_headless.yaml")),
    (
        "snapshots/primes.snap",
        include_str!("template/snapshots_primes.txt"),
    ),
    (
        "snapshots/headless.snap",
        include_str!("template/snapshots_headless.txt"),
    ),
    ("tests/local.rs", include_str!("template/tests_local.rs")),
    ("tests/snapshots.rs", include_str!("template/tests_snapshots.rs")),
    ("tests/story.rs", include_str!("template/tests_story.rs")),
];

/// Writes the files of the package, and prints what to do with it.
/// Writes the package.
///
/// # Errors
/// The directory is in use, or the files cannot be written.
pub fn run(arguments: &Args) -> Result<ExitCode, Failure> {
    let directory = &arguments.directory;
    let failed = |path: &Path, why: &dyn std::fmt::Display| Failure::new(&path.display().to_string(), why);
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(failed(
            directory,
            &"exists and is not empty; name another directory",
        ));
    }
    for (name, text) in FILES {
        let path = directory.join(renamed(name, arguments));
        let text = match name {
            "Cargo.toml" => {
                manifest(text, arguments.library.as_deref()).map_err(|error| failed(&path, &error))?
            }
            _ => text.to_owned(),
        };
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, renamed(&without_regions(&text), arguments)))
            .map_err(|error| failed(&path, &error))?;
    }
    let shown = directory.display();
    write::print(&format!(
        "{shown}: a package for {}Job. Its job runs on this machine, and its tests pass:\n  cd {shown}\n  cargo run -- local run \
         jobs/primes.yaml\n  cargo test\n",
        arguments.kind.stem
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a text of the template with the names of the new kind.
fn renamed(text: &str, arguments: &Args) -> String {
    let stem = &arguments.kind.stem;
    text.replace("FARM", &stem.to_ascii_uppercase())
        .replace("Farm", stem)
        .replace("farm", &stem.to_ascii_lowercase())
        .replace("example.com", &arguments.group)
}

/// Returns a text without the marks of the parts that docs/ shows.
fn without_regions(text: &str) -> String {
    let is_mark = |line: &&str| {
        let line = line.trim_start().trim_start_matches(['/', '#', ' ']);
        line.starts_with("region: ") || line.starts_with("endregion: ")
    };
    text.lines()
        .filter(|line| !is_mark(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// Returns the `Cargo.toml` of the package: without what only this repository's tests need, and with the library from its
/// repository, or from a local copy of it.
fn manifest(text: &str, library: Option<&Path>) -> std::io::Result<String> {
    let library = library.map(fs::canonicalize).transpose()?;
    let mut of_tests = false;
    let lines = text.lines().filter_map(|line| {
        of_tests |= line.starts_with("# endregion: ");
        of_tests &= !line.is_empty();
        let Some((before, path)) = line.split_once("{ path = \"../..").filter(|_| !of_tests) else {
            return (!of_tests).then(|| line.to_owned());
        };
        let path = path.split('"').next().unwrap_or_default();
        Some(match &library {
            Some(library) => format!("{before}{{ path = \"{}{path}\" }}", library.display()),
            None => format!("{before}{{ git = \"{}\" }}", env!("CARGO_PKG_REPOSITORY")),
        })
    });
    Ok(lines.flat_map(|line| [line, "\n".to_owned()]).collect())
}
