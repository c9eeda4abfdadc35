//! The expected and the existing files of snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use kube_manifest::{Source, manifests_below};
use training_job::Settings;
use training_job::render::text::snapshot;

use crate::check::Job;
use crate::exit::Failure;
use crate::help::help;

/// The text of each snapshot by its file.
pub(super) type Files = BTreeMap<PathBuf, String>;

/// Returns the error for a file that cannot be read or written.
pub(super) fn io_failure(file: &Path, error: io::Error) -> Failure {
    Failure::new(&file.display().to_string(), error)
}

/// Returns the end of a snapshot's first line. A file without it belongs to the user and is neither deleted nor
/// overwritten.
fn marker() -> String {
    help("Made by `{program} snapshot`.")
}

/// Returns the expected snapshots of `jobs` by file. The path of a snapshot is the path of its manifest below the
/// argument that named it. If the manifest contains several jobs, the job's name follows.
pub(super) fn expected(
    jobs: &[Job],
    settings: &Settings,
    arguments: &[PathBuf],
    directory: &Path,
) -> Result<Files, Failure> {
    let mut in_file = BTreeMap::<&str, usize>::new();
    for job in jobs {
        *in_file.entry(&job.file).or_default() += 1;
    }
    let mut files = Files::new();
    for job in jobs {
        let name = job.object["metadata"]["name"].as_str().unwrap_or_default();
        let mut path = directory.join(below(Path::new(&job.file), arguments));
        path.set_extension("");
        if job.file == STDIN || in_file.get(job.file.as_str()).is_some_and(|n| *n > 1) {
            path.push(name);
        }
        let mut full = path.into_os_string();
        full.push(".yaml");
        let path = PathBuf::from(full);
        if path.exists() && !is_snapshot(&read(&path)?) {
            let why = "must be a snapshot of this command; move the file, or choose another --dir";
            return Err(Failure::new(&path.display().to_string(), why));
        }
        if files.insert(path.clone(), text(job, settings)?).is_some() {
            let why = format!(
                "two jobs have this snapshot, one of them at {}; rename one of them",
                job.origin
            );
            return Err(Failure::new(&path.display().to_string(), why));
        }
    }
    Ok(files)
}

const STDIN: &str = "<stdin>";

fn below<'f>(file: &'f Path, arguments: &[PathBuf]) -> &'f Path {
    if file == Path::new(STDIN) {
        return Path::new("");
    }
    let inside = arguments.iter().filter_map(|a| file.strip_prefix(a).ok());
    let relative = inside
        .filter(|rest| !rest.as_os_str().is_empty())
        .min_by_key(|rest| rest.as_os_str().len());
    relative.or(file.file_name().map(Path::new)).unwrap_or(file)
}

fn text(job: &Job, settings: &Settings) -> Result<String, Failure> {
    let heading = format!("Objects of {}. {}", job.file, marker());
    snapshot(&heading, &job.object, &job.render(settings)?).map_err(|error| Failure::new(&job.origin, error))
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = Source::from_file(path, 0).text;
    text.map_err(|error| Failure::new(&path.display().to_string(), error))
}

fn is_snapshot(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.ends_with(&marker()))
}

/// Returns the snapshots below a directory, or none if the directory does not exist.
pub(super) fn existing(directory: &Path) -> Result<Files, Failure> {
    let mut paths = Vec::new();
    match manifests_below(directory, &mut paths) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_failure(directory, error)),
        _ => {}
    }
    let mut existing = Files::new();
    for path in paths.into_iter().collect::<BTreeSet<_>>() {
        let text = read(&path)?;
        if is_snapshot(&text) {
            existing.insert(path, text);
        }
    }
    Ok(existing)
}
