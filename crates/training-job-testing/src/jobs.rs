//! Reads the jobs of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use training_job::Kind;

/// A job in a file.
pub(super) struct File {
    /// The file's path below the folder as a name, followed by the job's name if the file has several jobs.
    pub(super) name: String,
    /// The path of the file relative to the root of the repository.
    pub(super) path: String,
    pub(super) job: Value,
}

/// Returns the jobs of a kind at and below a folder.
pub(super) fn read(kind: &Kind, directory: &Path, folder: &str) -> Vec<File> {
    let mut found = Vec::new();
    for file in files(directory, &["json", "yaml", "yml"]) {
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let ours = of_kind(kind, &text).unwrap_or_else(|error| panic!("{}:{error}", file.display()));
        let several = ours.len() > 1;
        let stem = stem(&file, directory);
        let relative = file.strip_prefix(directory).unwrap_or(&file);
        let path = format!("{}/{}", folder.trim_start_matches("../"), relative.display());
        for job in ours {
            let name = match several {
                false => stem.clone(),
                true => format!("{stem}-{}", job["metadata"]["name"].as_str().unwrap_or_default()),
            };
            let path = path.clone();
            found.push(File { name, path, job });
        }
    }
    found
}

/// Returns the objects of a kind in a manifest.
pub(super) fn of_kind(kind: &Kind, text: &str) -> Result<Vec<Value>, String> {
    let documents = kube_manifest::parse(text).map_err(|error| error.to_string())?;
    let group = format!("{}/", kind.resource.group);
    let is_ours = |object: &Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        object["kind"] == kind.name() && version.starts_with(&group)
    };
    let documents = documents.iter().map(kube_manifest::Node::to_json);
    Ok(documents.filter(is_ours).collect())
}

/// Returns the sorted files with one of these extensions at and below a folder.
pub(super) fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if extensions.contains(&extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns a file's path below a folder as a name.
pub(super) fn stem(file: &Path, directory: &Path) -> String {
    let relative = file.strip_prefix(directory).unwrap_or(file).with_extension("");
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("-")
}
