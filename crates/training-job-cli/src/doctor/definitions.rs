//! Compares installed definitions with those of this program.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use training_job_review::Kind;

use crate::kinds::Kinds;

/// The remedy for an outdated definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DefinitionRemedy {
    /// Apply the definition of this program.
    Apply,
    /// Replace the definition of an old operator, which keeps unknown fields.
    TakeOver,
    /// Convert the stored jobs.
    Convert,
}

impl DefinitionRemedy {
    pub(super) fn describe(self, kinds: &Kinds, kind: &Kind) -> String {
        match self {
            Self::Apply => (kinds.installation.apply_definition)(kind.name()),
            Self::TakeOver => (kinds.installation.take_over_definition)(kind.name()),
            Self::Convert => {
                "save the jobs with kubectl get, convert them, delete the definition, apply the new \
                              definition, and apply the jobs"
                    .to_owned()
            }
        }
    }
}

/// Returns the problem of a definition that differs from the one of this program, and the remedy.
pub(super) fn is_outdated(definition: &Value, kind: &Kind) -> Option<(String, DefinitionRemedy)> {
    let spec = &definition["spec"];
    if spec["preserveUnknownFields"] == true {
        let problem = "belongs to an older operator and keeps unknown fields, so stored jobs are not checked";
        return Some((problem.to_owned(), DefinitionRemedy::TakeOver));
    }
    // An inconsistent kind has no definition: `crd` says why.
    let expected = kind.built_definition().ok()?;
    let ours: BTreeSet<String> = expected.spec.versions.iter().map(|v| v.name.clone()).collect();
    let stored = texts(&definition["status"]["storedVersions"]);
    if let Some(version) = stored.difference(&ours).next() {
        let problem = format!("jobs may be stored as {version}, which is no longer served");
        return Some((problem, DefinitionRemedy::Convert));
    }
    let wanted = serde_json::to_value(&expected.spec.versions).unwrap_or_default();
    let differs = texts(&spec["versions"]) != ours || fields(&spec["versions"]) != fields(&wanted);
    differs.then(|| {
        let problem = "its versions or fields differ from those of this operator";
        (problem.to_owned(), DefinitionRemedy::Apply)
    })
}

/// Returns the strings of a list, or the names of its objects.
fn texts(list: &Value) -> BTreeSet<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|v| v.as_str().or_else(|| v["name"].as_str()).map(str::to_owned))
        .collect()
}

/// Returns the fields of the spec and of the status by version.
fn fields(versions: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let of_version = |version: &Value| {
        let of_part = |part: &str| {
            let properties = &version["schema"]["openAPIV3Schema"]["properties"][part]["properties"];
            let names = properties.as_object().into_iter().flat_map(|p| p.keys());
            names.map(|name| format!("{part}.{name}")).collect::<Vec<_>>()
        };
        let name = version["name"].as_str().unwrap_or_default().to_owned();
        (name, ["spec", "status"].into_iter().flat_map(of_part).collect())
    };
    versions
        .as_array()
        .into_iter()
        .flatten()
        .map(of_version)
        .collect()
}
