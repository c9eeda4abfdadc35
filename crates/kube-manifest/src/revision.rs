//! Manifests in a git revision, named `REV:path` as in git: from the repository's root, or from the current directory if
//! the path begins with `.` or `..`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::file::{File, MAX_FILE_BYTES, too_large};

/// Returns true if an argument that is not a file may name a file or directory of a revision.
pub(crate) fn may_be_revision(argument: &str) -> bool {
    !argument.starts_with(['-', ':']) && argument.contains(':')
}

/// Returns true if this is the name of a revision.
pub(crate) fn is_revision(name: &str) -> bool {
    !name.starts_with('-') && git(&["rev-parse", "--quiet", "--verify", &format!("{name}^{{tree}}")]).is_ok()
}

/// Returns true if the revision of the argument exists and lacks the path, and the path is known: it is in the working
/// tree, or `other` has it. Returns false for a path that may be misspelled.
pub(crate) fn lacks(argument: &str, other: &str) -> bool {
    let Ok((revision, path)) = resolve(argument) else {
        return false;
    };
    let is_known = || {
        let root = git(&["rev-parse", "--show-toplevel"]).map(|root| line(&root));
        root.is_ok_and(|root| Path::new(&root).join(&path).exists())
            || resolve(other).is_ok_and(|(revision, other)| other == path && has(&revision, &path))
    };
    is_revision(&revision) && !has(&revision, &path) && below(&revision, &path).is_none() && is_known()
}

/// Returns the file of this name, or all manifests below the directory of this name.
pub(crate) fn files(argument: &str, is_manifest: impl Fn(&str) -> bool) -> io::Result<Vec<File>> {
    let (revision, path) = resolve(argument)?;
    let object = format!("{revision}:{path}");
    let object_type = match git(&["cat-file", "-t", &object]) {
        Ok(object_type) => object_type,
        Err(_) if is_revision(&revision) => return Err(io::Error::other(missing_path(&revision, &path))),
        Err(error) => return Err(io::Error::other(missing_revision(&revision, &error))),
    };
    if object_type.trim_ascii() != b"tree" {
        return Ok(vec![(argument.to_owned(), blob(&object))]);
    }
    let list = git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &object])?;
    let names = String::from_utf8_lossy(&list);
    let mut files = Vec::new();
    for name in names.split('\0').filter(|name| is_manifest(name)) {
        let separator = if path.is_empty() { "" } else { "/" };
        let file = format!("{object}{separator}{name}");
        let bytes = blob(&file);
        files.push((file, bytes));
    }
    Ok(files)
}

/// Returns the revision of an argument, and the path from the repository's root without `.` and `..`.
fn resolve(argument: &str) -> io::Result<(String, String)> {
    let (revision, path) = argument.split_once(':').unwrap_or((argument, ""));
    let is_relative = matches!(path, "." | "..") || path.starts_with("./") || path.starts_with("../");
    let folder = match is_relative {
        true => folder()?,
        false => String::new(),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => {
                return Err(io::Error::other(
                    "the path leaves the repository; use a path inside it",
                ));
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    Ok((revision.to_owned(), parts.join("/")))
}

/// Returns the path of the current directory from the root, with a slash at its end. Empty at the root.
fn folder() -> io::Result<String> {
    let folder = git(&["rev-parse", "--show-prefix"]).map_err(|error| io::Error::other(no_git(&error)))?;
    Ok(line(&folder))
}

fn has(revision: &str, path: &str) -> bool {
    git(&["cat-file", "-e", &format!("{revision}:{path}")]).is_ok()
}

/// Returns the path from the root if it was given from the current directory.
fn below(revision: &str, path: &str) -> Option<String> {
    let path = format!("{}{path}", folder().ok().filter(|folder| !folder.is_empty())?);
    has(revision, &path).then_some(path)
}

fn missing_path(revision: &str, path: &str) -> String {
    match below(revision, path) {
        Some(from_root) => {
            format!("{revision} has {from_root}, but not {path}, at the root; write {revision}:./{path}")
        }
        None => format!(
            "{revision} has no {path}, nor has the working tree; correct it, or use /dev/null for nothing"
        ),
    }
}

fn missing_revision(revision: &str, error: &io::Error) -> String {
    let is_shallow = git(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|text| line(&text) == "true");
    if !is_shallow {
        return no_git(error);
    }
    let fetch = match revision.strip_prefix("origin/") {
        Some(branch) => format!("--depth=1 origin {branch}:refs/remotes/origin/{branch}"),
        None if revision.contains(['~', '^', '@']) => "--unshallow".to_owned(),
        None => format!("--depth=1 origin {revision}"),
    };
    format!(
        "{revision} is not in this shallow clone; fetch it with: git fetch {fetch} (in GitHub Actions, set fetch-depth: 0 \
         for actions/checkout)"
    )
}

fn no_git(error: &io::Error) -> String {
    format!("no such file, and none in git: {error}")
}

fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

pub(crate) fn blob(name: &str) -> io::Result<Vec<u8>> {
    let size = git(&["cat-file", "-s", name])?;
    let size = String::from_utf8_lossy(&size).trim().parse::<u64>();
    if size.is_ok_and(|size| size > MAX_FILE_BYTES) {
        return Err(too_large(MAX_FILE_BYTES));
    }
    git(&["cat-file", "blob", name])
}

/// Runs git. An error has all of git's message on one line, because its remedy is in the later lines.
fn git(arguments: &[&str]) -> io::Result<Vec<u8>> {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::other(format!("cannot run git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = errors
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Err(io::Error::other(lines.join(" ")))
}
