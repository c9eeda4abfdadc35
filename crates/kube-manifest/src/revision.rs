//! Manifests in a git revision, named `REV:path` as in git.

use std::io;
use std::process::{Command, Stdio};

use crate::file::{File, MAX_FILE_BYTES, too_large};

/// Returns true if an argument that is not a file may name a file or directory of a revision.
pub(crate) fn may_be_revision(argument: &str) -> bool {
    !argument.starts_with(['-', ':']) && argument.contains(':')
}

/// Returns true if the revision of the argument exists, and has no file or directory of that name.
pub(crate) fn lacks(argument: &str) -> bool {
    let revision = argument.split(':').next().unwrap_or_default();
    git(&[
        "rev-parse",
        "--quiet",
        "--verify",
        &format!("{revision}^{{tree}}"),
    ])
    .is_ok()
        && git(&["cat-file", "-e", argument]).is_err()
}

/// Returns the file of this name, or all manifests below the directory of this name.
pub(crate) fn files(argument: &str, is_manifest: impl Fn(&str) -> bool) -> io::Result<Vec<File>> {
    let object_type = git(&["cat-file", "-t", argument])?;
    if object_type.trim_ascii() != b"tree" {
        return Ok(vec![(argument.to_owned(), blob(argument))]);
    }
    let list = git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", argument])?;
    let names = String::from_utf8_lossy(&list);
    let mut files = Vec::new();
    for name in names.split('\0').filter(|name| is_manifest(name)) {
        let separator = if argument.ends_with([':', '/']) { "" } else { "/" };
        let file = format!("{argument}{separator}{name}");
        let bytes = blob(&file);
        files.push((file, bytes));
    }
    Ok(files)
}

pub(crate) fn blob(name: &str) -> io::Result<Vec<u8>> {
    let size = git(&["cat-file", "-s", name])?;
    let size = String::from_utf8_lossy(&size).trim().parse::<u64>();
    if size.is_ok_and(|size| size > MAX_FILE_BYTES) {
        return Err(too_large(MAX_FILE_BYTES));
    }
    git(&["cat-file", "blob", name])
}

fn git(arguments: &[&str]) -> io::Result<Vec<u8>> {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::other(format!("cannot run git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().next().unwrap_or_default();
    Err(io::Error::other(format!(
        "no such file, and none in git: {first}"
    )))
}
