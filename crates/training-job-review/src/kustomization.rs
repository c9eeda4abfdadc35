//! Kustomizations: they decide which files are patches, which are no manifests by themselves, and which files are
//! applied together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube_manifest::{parse, read_text};
use serde_json::Value;

/// The names under which kustomize finds a kustomization.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The kustomizations of the directories that a command reads.
#[derive(Debug, Default)]
pub(crate) struct Kustomizations {
    /// For each file that is a patch the directory of its kustomization.
    patches: BTreeMap<String, String>,
    /// For each kustomization its directory and the files that it lists as resources.
    resources: Vec<(String, BTreeSet<String>)>,
}

impl Kustomizations {
    /// Reads the kustomizations among the files of a directory.
    pub(crate) fn read(&mut self, files: &[String]) {
        for file in files {
            let (directory, name) = split(file);
            if !NAMES.contains(&name) {
                continue;
            }
            let Some(text) = read_text(file) else { continue };
            let mut resources = BTreeSet::new();
            for document in parse(&text).unwrap_or_default() {
                let document = document.to_json();
                let patch = |name: String| (joined(directory, &name), directory.to_owned());
                self.patches.extend(patches(&document).into_iter().map(patch));
                let listed = document["resources"].as_array().into_iter().flatten();
                resources.extend(
                    listed
                        .filter_map(Value::as_str)
                        .map(|name| match name.contains("://") {
                            true => name.to_owned(),
                            false => joined(directory, name),
                        }),
                );
            }
            self.resources.push((directory.to_owned(), resources));
        }
    }

    /// Reads the kustomization in the directory of a file.
    pub(crate) fn read_beside(&mut self, file: &str) {
        let (directory, _) = split(file);
        if !self.resources.iter().any(|(of, _)| of == directory) {
            let slash = if directory.is_empty() || directory.ends_with(':') {
                ""
            } else {
                "/"
            };
            self.read(&NAMES.map(|name| format!("{directory}{slash}{name}")));
        }
    }

    /// Returns the directory whose kustomization names the file as a patch.
    pub(crate) fn of_patch(&self, file: &str) -> Option<&str> {
        let (directory, name) = split(file);
        let found = self.patches.get(&joined(directory, name))?;
        Some(if found.is_empty() { "." } else { found })
    }

    /// Returns the first directory whose kustomization takes objects from outside of `directory`.
    pub(crate) fn first_of_others(&self, directory: &str) -> Option<&str> {
        let inside = joined(directory, "");
        let is_outside = |file: &String| !file.starts_with(&inside) || file.starts_with(":..");
        let mut all = self.resources.iter();
        let (found, _) = all.find(|(_, listed)| listed.iter().any(is_outside))?;
        Some(if found.is_empty() { "." } else { found.as_str() })
    }

    /// True if one kustomization lists both files.
    pub(crate) fn apply_together(&self, files: [&str; 2]) -> bool {
        let [one, other] = files.map(|file| {
            let (directory, name) = split(file);
            joined(directory, name)
        });
        self.resources
            .iter()
            .any(|(_, listed)| listed.contains(&one) && listed.contains(&other))
    }

    /// True if a kustomization is in the directory of the file.
    pub(crate) fn stands_beside(&self, file: &str) -> bool {
        let (directory, _) = split(file);
        let is_read = self.resources.iter().any(|(of, _)| of == directory);
        is_read || NAMES.iter().any(|name| Path::new(directory).join(name).exists())
    }
}

/// Returns the directory and the name of a file.
fn split(file: &str) -> (&str, &str) {
    file.rsplit_once('/')
        .unwrap_or_else(|| match file.split_once(':') {
            // A file at the root of a git revision.
            Some((revision, name)) => (&file[..=revision.len()], name),
            None => ("", file),
        })
}

/// Returns the path of a name in a directory, without `.` and `..`.
fn joined(directory: &str, name: &str) -> String {
    let (revision, directory) = match directory.split_once(':') {
        Some((revision, directory)) => (revision, directory),
        None => ("", directory),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("{revision}:{}", parts.join("/"))
}

/// Returns the files that a kustomization names as patches, in any of the three forms that kustomize has had.
fn patches(kustomization: &Value) -> Vec<String> {
    let fields = ["patches", "patchesStrategicMerge", "patchesJson6902"];
    let items = fields
        .iter()
        .filter_map(|field| kustomization[field].as_array())
        .flatten();
    let names = items.filter_map(|item| item["path"].as_str().or(item.as_str()));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patches_of_all_forms_are_found() {
        let kustomization = json!({
            "resources": ["job.yaml"],
            "patches": [{"path": "./more.yaml"}, {"patch": "- op: remove"}],
            "patchesStrategicMerge": ["old.yaml"],
            "patchesJson6902": [{"path": "ops.yaml", "target": {"kind": "MXJob"}}],
        });
        assert_eq!(patches(&kustomization), ["./more.yaml", "old.yaml", "ops.yaml"]);
        assert_eq!(patches(&json!({"patches": "none"})), [""; 0]);
    }

    #[test]
    fn a_path_is_that_of_the_kustomization() {
        for (file, name, path) in [
            ("./a/kustomization.yaml", "./more.yaml", ":a/more.yaml"),
            ("a/b/Kustomization", "../c/more.yaml", ":a/c/more.yaml"),
            ("HEAD:kustomization.yaml", "more.yaml", "HEAD:more.yaml"),
            ("HEAD:a/b/kustomization.yml", "../more.yaml", "HEAD:a/more.yaml"),
            ("kustomization.yaml", "../more.yaml", ":../more.yaml"),
        ] {
            assert_eq!(joined(split(file).0, name), path);
        }
    }
}
