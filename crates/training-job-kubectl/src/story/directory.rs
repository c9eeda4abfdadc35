//! The files of a history: one for each job, which is written once and as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use training_job_story::Story;

/// The beginning and the end of the names of files that are being written.
const PART: (&str, &str) = (".story-", ".part");

const SUFFIX: &str = ".json";

/// The maximum length of a job's name in the name of a file. Names of files have at most 255 bytes.
const MAX_NAME: usize = 80;

/// The maximum size of a file that is read. Stories are smaller.
const MAX_BYTES: u64 = 8 << 20;

/// A story in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of the file.
    pub file: String,
    /// The size of the file.
    pub bytes: u64,
    /// The end of the job.
    pub at: Timestamp,
}

/// A directory to which stories are written.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Creates the directory if it is missing, and checks that files can be written to it.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let directory = Self(path);
        let probe = directory.part("probe");
        create(&probe).and_then(|()| fs::remove_file(&probe))?;
        Ok(directory)
    }

    /// Removes the files that a process which was killed has not completed.
    pub fn remove_parts(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PART.0) && name.ends_with(PART.1) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Returns the stories of the directory.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        entries(&self.0)
    }

    /// Writes a story. After an error or a crash, the directory has all of it or nothing.
    pub fn write(&self, story: &Story) -> io::Result<Entry> {
        let text = serde_json::to_vec(story).map_err(io::Error::other)?;
        let file = file_name(story);
        let part = self.part(&safe(&story.uid, MAX_NAME));
        let ended = story.finished_at.unwrap_or(story.observed_at);
        let write = || {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o640);
            let mut new = options.open(&part)?;
            new.write_all(&text)?;
            // Copies and volumes without such times sort by the time of the write.
            let _ = new.set_modified(SystemTime::from(ended));
            new.sync_all()?;
            fs::rename(&part, self.0.join(&file))?;
            File::open(&self.0)?.sync_all()
        };
        if let Err(error) = write() {
            let _ = fs::remove_file(&part);
            return Err(error);
        }
        Ok(Entry {
            file,
            bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
            at: ended,
        })
    }

    /// Removes a file. A missing file is not an error.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self, entry: &Entry) -> io::Result<()> {
        match fs::remove_file(self.0.join(&entry.file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn part(&self, name: &str) -> PathBuf {
        let (first, last) = PART;
        self.0.join(format!("{first}{name}{last}"))
    }
}

fn create(file: &Path) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?
        .write_all(b"{}")
}

pub(super) fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let Ok(file) = entry.file_name().into_string() else {
            continue;
        };
        if uid_of(&file).is_none() {
            continue;
        }
        match entry.metadata() {
            Ok(meta) if meta.is_file() => entries.push(Entry {
                file,
                bytes: meta.len(),
                at: meta
                    .modified()
                    .ok()
                    .and_then(|at| Timestamp::try_from(at).ok())
                    .unwrap_or_default(),
            }),
            // The file was removed meanwhile, or is none.
            _ => {}
        }
    }
    Ok(entries)
}

/// Returns the name of a story's file: `NAMESPACE.NAME.KIND.UID.json`.
fn file_name(story: &Story) -> String {
    let (prefix, uid) = (prefix(&story.namespace, &story.name), safe(&story.uid, MAX_NAME));
    format!(
        "{prefix}{}.{}{SUFFIX}",
        safe(&story.kind, 40).replace('.', "_"),
        uid.replace('.', "_")
    )
}

/// Returns the beginning of the names of files for jobs of this name.
fn prefix(namespace: &str, name: &str) -> String {
    format!("{}.{}.", safe(namespace, 63), safe(name, MAX_NAME))
}

/// Returns a text without characters that a name in Kubernetes cannot have, such as a slash.
fn safe(text: &str, max: usize) -> String {
    let chars = text.chars().take(max);
    chars
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// Returns the UID in the name of a story's file.
pub fn uid_of(file: &str) -> Option<&str> {
    let stem = file.strip_suffix(SUFFIX).filter(|_| !file.starts_with('.'))?;
    let (_, uid) = stem.rsplit_once('.')?;
    (stem.matches('.').count() >= 3).then_some(uid)
}

/// Returns true if the name of a story's file may be that of a job in this namespace.
pub(super) fn is_in(entry: &Entry, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| entry.file.starts_with(&format!("{}.", safe(namespace, 63))))
}

/// The finished job to read.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The kinds that it may have; empty for any.
    pub kinds: &'a [String],
    /// The UID; `None` for any.
    pub uid: Option<&'a str>,
}

impl Wanted<'_> {
    fn is(&self, story: &Story) -> bool {
        story.namespace == self.namespace
            && story.name == self.name
            && (self.kinds.is_empty() || self.kinds.contains(&story.kind))
            && self.uid.is_none_or(|uid| uid == story.uid)
    }
}

/// The story of the wanted job that ended last, and what was not chosen.
#[derive(Debug, Default)]
pub struct Found {
    /// The story, if there is one.
    pub story: Option<Story>,
    /// The number of jobs that are wanted as well.
    pub(crate) others: usize,
    /// The problems of files of this name that are not stories.
    pub problems: Vec<String>,
}

/// Returns the story of the wanted job that ended last.
///
/// # Errors
/// The directory cannot be read.
pub fn find(path: &Path, wanted: &Wanted<'_>) -> io::Result<Found> {
    let mut found = Found::default();
    let prefix = prefix(wanted.namespace, wanted.name);
    let mut stories = Vec::new();
    for entry in entries(path)? {
        if !entry.file.starts_with(&prefix) {
            continue;
        }
        match read_story(&path.join(&entry.file)) {
            Ok(story) => stories.extend(story.filter(|story| wanted.is(story))),
            Err(problem) => found.problems.push(format!("{}: {problem}", entry.file)),
        }
    }
    found.others = stories.len().saturating_sub(1);
    found.story = stories.into_iter().max_by_key(|story| story.finished_at);
    Ok(found)
}

/// Reads a story. Returns `None` if it was removed meanwhile.
pub(super) fn read_story(file: &Path) -> Result<Option<Story>, String> {
    let mut text = String::new();
    let file = match File::open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let read = file.take(MAX_BYTES).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Story::from_json(&text).map(Some)
}
