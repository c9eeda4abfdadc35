//! Where manifests come from.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::revision;

/// A file's text, or why it cannot be read.
pub struct Source {
    /// Its name in messages: its path, `REV:path` or `<stdin>`.
    pub name: String,
    /// The index of the argument that named it, or the directory around it.
    pub argument: usize,
    /// Its text, or the reason for there being none: no such file, no permission, no UTF-8.
    pub text: Result<String, String>,
}

impl Source {
    /// A source of this name, from the bytes that were read. `argument` is the index of the argument that named it.
    pub fn from_bytes(name: String, argument: usize, bytes: io::Result<Vec<u8>>) -> Self {
        let text = bytes.map_err(|e| reason(&e)).and_then(text);
        Self { name, argument, text }
    }
}

/// Reads the files that the arguments of a command name.
///
/// `-` is standard input. A directory stands for all manifests in it and below it ([`manifests_below`]). An argument
/// `REV:path` that is no file is a file or a directory of a git revision, read by running `git`. An argument that cannot
/// be read is a source whose text is an error.
pub fn sources(arguments: &[PathBuf]) -> Vec<Source> {
    let mut sources = Vec::new();
    for (n, path) in arguments.iter().enumerate() {
        let mut add = |name: String, bytes: io::Result<Vec<u8>>| {
            sources.push(Source::from_bytes(name, n, bytes));
        };
        if path == Path::new("-") {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            add("<stdin>".to_owned(), read.map(|_| bytes));
        } else if path.is_dir() {
            let mut files = Vec::new();
            match manifests_below(path, &mut files) {
                Ok(()) if files.is_empty() => {
                    add(path.display().to_string(), Err(no_manifest()));
                }
                Ok(()) => {
                    for file in files {
                        add(file.display().to_string(), fs::read(&file));
                    }
                }
                Err(error) => add(path.display().to_string(), Err(error)),
            }
        } else {
            let name = path.display().to_string();
            match fs::read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && revision::may_be_revision(&name) => {
                    match revision::files(&name, |file| is_manifest(Path::new(file))) {
                        Ok(files) if files.is_empty() => add(name, Err(no_manifest())),
                        Ok(files) => files.into_iter().for_each(|(name, bytes)| add(name, bytes)),
                        Err(error) => add(name, Err(error)),
                    }
                }
                bytes => add(name, bytes),
            }
        }
    }
    sources
}

/// Adds the `*.yaml`, `*.yml` and `*.json` files in a directory and below it to `files`, ordered by name.
///
/// Links to directories are not followed: they may lead back up.
///
/// # Errors
/// A directory cannot be read.
pub fn manifests_below(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            manifests_below(&path, files)?;
        } else if path.is_file() && is_manifest(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    matches!(
        path.extension().and_then(|e| e.to_str()),
        Some("yaml" | "yml" | "json")
    )
}

fn no_manifest() -> io::Error {
    io::Error::other("there is no *.yaml, *.yml or *.json file in it")
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not text: byte {at} is not UTF-8")
    })?;
    if let Some(at) = text.find('\0') {
        return Err(format!("it is not text: byte {at} is 0"));
    }
    Ok(text)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read; change its permissions".to_owned(),
        _ => error.to_string(),
    }
}
