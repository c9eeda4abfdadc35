//! The sources of manifests: files, directories, standard input and git revisions.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::file::{File, MAX_FILE_BYTES, read_bounded};
use crate::revision;

/// A file's text, or the reason that it cannot be read.
pub struct Source {
    /// The name in messages: the path, `REV:path` or `<stdin>`.
    pub name: String,
    /// The index of the argument that names the file or the directory around it.
    pub argument: usize,
    /// The names of all files of the directory that the argument names, including this one; empty if the argument names
    /// the file itself.
    pub siblings: Rc<[String]>,
    /// The text, or the reason that it is missing.
    pub text: Result<String, NoText>,
}

/// The reason that a file has no text.
#[derive(Debug)]
pub struct NoText {
    /// The reason in words: no such file, no permission, too large, no UTF-8.
    pub problem: String,
    /// The text of a file that is not UTF-8, as far as it can be read. `None` if the file was not read.
    pub lossy: Option<String>,
    /// True if the file has more than [`MAX_FILE_BYTES`].
    pub is_too_large: bool,
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl Source {
    /// Makes a source of this name from bytes. `argument` is the index of the argument that names it.
    pub fn from_bytes(name: String, argument: usize, bytes: io::Result<Vec<u8>>) -> Self {
        let unread = |error: io::Error| NoText {
            problem: reason(&error),
            lossy: None,
            is_too_large: error.kind() == io::ErrorKind::FileTooLarge,
        };
        Self {
            name,
            argument,
            siblings: Rc::default(),
            text: bytes.map_err(unread).and_then(text),
        }
    }

    /// True if the argument names a directory in which the file was found.
    pub fn is_found(&self) -> bool {
        !self.siblings.is_empty()
    }

    /// Reads at most [`MAX_FILE_BYTES`] of a file. `argument` is the index of the argument that names it.
    pub fn from_file(path: &Path, argument: usize) -> Self {
        Self::from_bytes(path.display().to_string(), argument, read_file(path))
    }
}

/// Returns the files that the arguments of a command name. Each file is read when the iterator reaches it, so that
/// few are in memory at a time.
///
/// `-` is standard input. A directory stands for all manifests in it and below it ([`manifests_below`]). An argument
/// `REV:path` that is not a file names a file or a directory of a git revision, which is read by running `git`; as in
/// git, the path is from the repository's root unless it begins with `.` or `..`. An
/// argument that cannot be read is returned as a source whose text is an error.
pub fn sources(arguments: &[PathBuf]) -> impl Iterator<Item = Source> {
    let arguments = arguments.iter().enumerate();
    arguments.flat_map(|(n, path)| {
        let (siblings, files) = of_argument(path);
        files.map(move |(name, bytes)| Source {
            siblings: Rc::clone(&siblings),
            ..Source::from_bytes(name, n, bytes)
        })
    })
}

/// Returns the text of a file, or of a file of a git revision (`REV:path`).
pub fn read_text(name: &str) -> Option<String> {
    let bytes = read_file(Path::new(name)).or_else(|error| match revision::may_be_revision(name) {
        true => revision::blob(name),
        false => Err(error),
    });
    text(bytes.ok()?).ok()
}

/// Returns true if an argument names nothing: a file that does not exist, or a path that a git revision lacks and that
/// is in the working tree or in `other`. Returns false for a revision that does not exist, for the name of a revision
/// without a path, and for a path that may be misspelled.
pub fn is_missing(argument: &Path, other: &Path) -> bool {
    let name = argument.display().to_string();
    let is_file = argument == Path::new("-") || argument.exists();
    !is_file
        && match revision::may_be_revision(&name) {
            true => revision::lacks(&name, &other.display().to_string()),
            false => !revision::is_revision(&name),
        }
}

type Files = (Rc<[String]>, Box<dyn Iterator<Item = File>>);

/// Returns the files of an argument, and their names if the argument is a directory.
fn of_argument(path: &Path) -> Files {
    let name = path.display().to_string();
    if path == Path::new("-") {
        let bytes = read_bounded(io::stdin().lock(), MAX_FILE_BYTES);
        return only("<stdin>".to_owned(), bytes);
    }
    if path.is_dir() {
        let mut files = Vec::new();
        return match manifests_below(path, &mut files) {
            Ok(()) if files.is_empty() => only(name, Err(no_manifest())),
            Ok(()) => {
                let names = files.iter().map(|file| file.display().to_string()).collect();
                let read = |file: PathBuf| (file.display().to_string(), read_file(&file));
                (names, Box::new(files.into_iter().map(read)))
            }
            Err(error) => only(name, Err(error)),
        };
    }
    match read_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && revision::may_be_revision(&name) => {
            match revision::files(&name, |file| {
                is_manifest(Path::new(file)) && !file.split('/').any(|part| is_hidden(part.as_ref()))
            }) {
                Ok(files) if files.is_empty() => only(name, Err(no_manifest())),
                Ok(files) => {
                    let is_directory = files.iter().any(|(file, _)| *file != name);
                    let names = files
                        .iter()
                        .filter(|_| is_directory)
                        .map(|(file, _)| file.clone());
                    (names.collect(), Box::new(files.into_iter()))
                }
                Err(error) => only(name, Err(error)),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && revision::is_revision(&name) => {
            let remedy = format!(
                "no such file, but a git revision; write {name}:PATH, or {name}:. for this directory"
            );
            only(name, Err(io::Error::other(remedy)))
        }
        bytes => only(name, bytes),
    }
}

fn only(name: String, bytes: io::Result<Vec<u8>>) -> Files {
    (Rc::default(), Box::new(std::iter::once((name, bytes))))
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(fs::File::open(path)?, MAX_FILE_BYTES)
}

/// Adds the `*.yaml`, `*.yml` and `*.json` files in a directory and below it to `files`, ordered by name, and each
/// `Kustomization`.
///
/// Links to directories are not followed: they may lead back up. Names that begin with a dot are skipped, such as
/// `.github`. A directory below it that cannot be read is added in the place of its files.
///
/// # Errors
/// A directory cannot be read.
pub fn manifests_below(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if is_hidden(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if manifests_below(&path, files).is_err() {
                files.push(path);
            }
        } else if path.is_file() && is_manifest(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_manifest(path: &Path) -> bool {
    let end = path.extension().and_then(OsStr::to_str);
    matches!(end, Some("yaml" | "yml" | "json")) || path.file_name() == Some(OsStr::new("Kustomization"))
}

fn no_manifest() -> io::Error {
    io::Error::other("contains no *.yaml, *.yml or *.json file")
}

fn text(bytes: Vec<u8>) -> Result<String, NoText> {
    let no_text = |why: &str, lossy: String| NoText {
        problem: format!("must be UTF-8 text ({why})"),
        lossy: Some(lossy),
        is_too_large: false,
    };
    let unit: Option<fn([u8; 2]) -> u16> = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some(u16::from_le_bytes),
        Some([0xfe, 0xff]) => Some(u16::from_be_bytes),
        _ => None,
    };
    if let Some(unit) = unit {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| unit([pair[0], pair[1]]))
            .collect();
        let why = "is UTF-16, as PowerShell writes; save it as UTF-8";
        return Err(no_text(why, String::from_utf16_lossy(&units)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let why = format!("byte {} is not UTF-8", error.utf8_error().valid_up_to());
        no_text(&why, String::from_utf8_lossy(error.as_bytes()).into_owned())
    })?;
    match text.find('\0') {
        Some(at) => Err(no_text(&format!("byte {at} is 0"), text)),
        None => Ok(text),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied; make it readable".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_when_its_turn_comes() {
        let directory = std::env::temp_dir().join(format!("sources-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [first, second] = ["a.yaml", "b.yaml"].map(|name| directory.join(name));
        fs::write(&first, "a: 1").unwrap();
        fs::write(&second, "b: 1").unwrap();
        let arguments = [directory.clone()];
        let mut sources = sources(&arguments);
        assert_eq!(sources.next().unwrap().text.unwrap(), "a: 1");
        fs::write(&second, "b: 2").unwrap();
        assert_eq!(sources.next().unwrap().text.unwrap(), "b: 2");
        assert!(sources.next().is_none());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_text_in_another_encoding_is_named() {
        let of = |bytes: Vec<u8>| Source::from_bytes(String::new(), 0, Ok(bytes)).text.unwrap_err();
        let utf16: Vec<u8> = "\u{feff}kind: A"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let problem = "must be UTF-8 text (is UTF-16, as PowerShell writes; save it as UTF-8)";
        assert_eq!(of(utf16.clone()).problem, problem);
        assert!(of(utf16).lossy.unwrap().ends_with("kind: A"));
        let latin = of(b"kind: A # \xe9".to_vec());
        assert_eq!(latin.problem, "must be UTF-8 text (byte 10 is not UTF-8)");
        assert!(latin.lossy.unwrap().starts_with("kind: A"));
    }

    #[test]
    fn a_device_is_rejected() {
        let sources: Vec<_> = sources(&[PathBuf::from("/dev/zero")]).collect();
        assert_eq!(
            sources[0].text.as_ref().unwrap_err().problem,
            "must be at most 64 MiB; split it into several files"
        );
    }
}
