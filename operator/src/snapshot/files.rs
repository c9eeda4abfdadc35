//! The files of snapshots, as they should be and as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kube_manifest::manifests_below;
use training_job::Settings;
use training_job::render::text::snapshot;

use crate::check::Job;
use crate::exit::Failure;

/// The text of each snapshot, by its file.
pub(super) type Files = BTreeMap<PathBuf, String>;

/// A file that cannot be read or written.
pub(super) fn at(file: &Path, error: io::Error) -> Failure {
    Failure::new(&file.display().to_string(), error)
}

/// How a snapshot's first line ends. A file without it is the user's own: it is neither deleted nor
/// overwritten.
const MARK: &str = "Made by `training-operator snapshot`.";

/// The snapshots that `jobs` should have, by file. The path of a snapshot is that of its manifest below the argument that
/// named it; if the manifest holds several jobs, followed by the name of the job.
pub(super) fn wanted(
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
        if path.exists() && !is_snapshot(&fs::read_to_string(&path).map_err(|error| at(&path, error))?) {
            let why = "it is there, and no snapshot; move it away, or choose another --dir";
            return Err(Failure::new(&path.display().to_string(), why));
        }
        if files.insert(path.clone(), text(job, settings)?).is_some() {
            let why = format!(
                "two jobs, one of them {}, would be written to it; rename one",
                job.origin
            );
            return Err(Failure::new(&path.display().to_string(), why));
        }
    }
    Ok(files)
}

/// The name of standard input among files.
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
    let heading = format!("What {} gets. {MARK}", job.file);
    snapshot(&heading, &job.object, &job.render(settings)?).map_err(|error| Failure::new(&job.origin, error))
}

fn is_snapshot(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.ends_with(MARK))
}

/// The snapshots below a directory; none if there is no such directory.
pub(super) fn found(directory: &Path) -> Result<Files, Failure> {
    let mut paths = Vec::new();
    match manifests_below(directory, &mut paths) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(directory, error)),
        _ => {}
    }
    let mut found = Files::new();
    for path in paths.into_iter().collect::<BTreeSet<_>>() {
        let text = fs::read_to_string(&path).map_err(|error| at(&path, error))?;
        if is_snapshot(&text) {
            found.insert(path, text);
        }
    }
    Ok(found)
}
