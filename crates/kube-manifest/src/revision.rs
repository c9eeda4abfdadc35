//! Manifests in a git revision: `REV:path`, as git writes it.

use std::io;
use std::process::{Command, Stdio};

/// A file's name and what is in it.
type File = (String, io::Result<Vec<u8>>);

/// Whether an argument that is no file may name a file or directory of a revision.
pub(crate) fn may_be_revision(argument: &str) -> bool {
    !argument.starts_with(['-', ':']) && argument.contains(':')
}

/// The file of this name, or all files below the directory of this name.
pub(crate) fn files(argument: &str, is_manifest: impl Fn(&str) -> bool) -> io::Result<Vec<File>> {
    let object_type = git(&["cat-file", "-t", argument])?;
    if object_type.trim_ascii() != b"tree" {
        return Ok(vec![(argument.to_owned(), git(&["cat-file", "blob", argument]))]);
    }
    let list = git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", argument])?;
    let names = String::from_utf8_lossy(&list);
    let mut files = Vec::new();
    for name in names.split('\0').filter(|name| is_manifest(name)) {
        let separator = if argument.ends_with([':', '/']) { "" } else { "/" };
        let file = format!("{argument}{separator}{name}");
        let bytes = git(&["cat-file", "blob", &file]);
        files.push((file, bytes));
    }
    Ok(files)
}

fn git(arguments: &[&str]) -> io::Result<Vec<u8>> {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::other(format!("git cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    Err(io::Error::other(format!(
        "there is no such file, and git has none: {first}"
    )))
}
