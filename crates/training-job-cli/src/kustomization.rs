//! Patches of kustomizations: files that hold parts of objects, which are no manifests by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kube_manifest::parse;
use serde_json::Value;

/// The names under which kustomize finds a kustomization.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The patches of the kustomizations of each directory. A kustomization is read once.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    by_directory: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl Patches {
    /// Returns true if a kustomization in the directory of a file names it as a patch.
    pub(crate) fn contain(&mut self, file: &Path) -> bool {
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
            return false;
        };
        let patches = self.by_directory.entry(directory.to_owned());
        let patches = patches.or_insert_with(|| patches_of(directory));
        name.to_str().is_some_and(|name| patches.contains(name))
    }
}

fn patches_of(directory: &Path) -> BTreeSet<String> {
    let texts = NAMES
        .iter()
        .filter_map(|name| fs::read_to_string(directory.join(name)).ok());
    let documents = texts.filter_map(|text| parse(&text).ok()).flatten();
    documents
        .flat_map(|document| patches(&document.to_json()))
        .collect()
}

/// Returns the files that a kustomization names as patches, in any of the three forms that kustomize has had.
fn patches(kustomization: &Value) -> Vec<String> {
    let fields = ["patches", "patchesStrategicMerge", "patchesJson6902"];
    let items = fields
        .iter()
        .filter_map(|field| kustomization[field].as_array())
        .flatten();
    let names = items.filter_map(|item| item["path"].as_str().or(item.as_str()));
    names
        .map(|name| name.trim_start_matches("./").to_owned())
        .collect()
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
        assert_eq!(patches(&kustomization), ["more.yaml", "old.yaml", "ops.yaml"]);
        assert_eq!(patches(&json!({"patches": "none"})), [""; 0]);
    }
}
