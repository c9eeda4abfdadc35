//! The Helm chart: its copies are current, its versions agree, and its values have a schema. `make test-helm` renders and
//! installs it.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use training_operator_testing::program::root;

fn chart() -> PathBuf {
    root().join("manifests/helm/training-operator")
}

fn yaml(path: PathBuf) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Folders whose definitions the chart copies.
const DEFINITIONS: [&str; 3] = ["crds", "crds/mpi", "crds/mlkube"];

/// Other files that the chart copies, and the names of the copies.
const FILES: [(&str, &str); 4] = [
    (
        "manifests/namespace-admins/cluster-role.yaml",
        "namespace-admins.yaml",
    ),
    (
        "manifests/overlays/kubeflow/user-roles.yaml",
        "kubeflow-users.yaml",
    ),
    ("manifests/monitoring/alerts.yaml", "alerts.yaml"),
    ("manifests/monitoring/dashboard.json", "dashboard.json"),
];

/// Returns each copied file and the name of its copy.
fn copies() -> Vec<(PathBuf, String)> {
    let mut copies: Vec<(PathBuf, String)> = FILES
        .iter()
        .map(|(from, to)| (root().join(from), (*to).to_owned()))
        .collect();
    for folder in DEFINITIONS {
        let files = fs::read_dir(root().join(folder)).unwrap();
        let files = files.map(|file| file.unwrap().path());
        copies.extend(
            files
                .filter(|file| file.extension().is_some_and(|ending| ending == "yaml"))
                .map(|file| {
                    let name = format!("crds/{}", file.file_name().unwrap().to_str().unwrap());
                    (file, name)
                }),
        );
    }
    copies
}

#[test]
fn copies_are_current() {
    let folder = chart().join("files");
    let copies = copies();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("crds")).unwrap();
        for (from, to) in &copies {
            fs::copy(from, folder.join(to)).unwrap();
        }
    }
    for (from, to) in &copies {
        assert!(
            fs::read(folder.join(to)).ok() == fs::read(from).ok(),
            "files/{to} is stale; run: UPDATE_SNAPSHOTS=1 cargo test -p training-operator --test offline chart::"
        );
    }
    let present =
        fs::read_dir(&folder).unwrap().count() - 1 + fs::read_dir(folder.join("crds")).unwrap().count();
    assert_eq!(present, copies.len(), "a copy has no original");
}

#[test]
fn versions_agree() {
    let version = env!("CARGO_PKG_VERSION");
    let about = yaml(chart().join("Chart.yaml"));
    assert_eq!(about["version"], version);
    assert_eq!(about["appVersion"], version);
    let label = "app.kubernetes.io/version";
    let base = yaml(root().join("manifests/base/kustomization.yaml"));
    assert_eq!(base["labels"][0]["pairs"][label], version);
    let deployment = yaml(root().join("manifests/base/deployment.yaml"));
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let values = yaml(chart().join("values.yaml"));
    let repository = values["image"]["repository"].as_str().unwrap();
    assert_eq!(*image, format!("{repository}:{version}"));
    for (definition, name) in copies().iter().filter(|(_, name)| name.starts_with("crds/")) {
        let labels = &yaml(definition.clone())["metadata"]["labels"];
        assert_eq!(labels[label], version, "{name}");
        assert_eq!(labels["app.kubernetes.io/name"], "training-operator", "{name}");
    }
}

/// Adds the paths of the fields of a default value. A field without properties in the schema takes anything.
fn fields(value: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (value.as_object(), schema.get("properties")) {
        (Some(members), Some(properties)) => {
            for (name, member) in members {
                fields(member, &properties[name], &format!("{path}.{name}"), found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

/// Adds the paths of the fields of a schema, each with a description. Objects reject others.
fn described(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    if !path.is_empty() {
        assert!(schema["description"].is_string(), "{path} has no description");
    }
    match schema["properties"].as_object() {
        Some(properties) => {
            assert_eq!(schema["additionalProperties"], false, "{path}");
            for (name, property) in properties {
                described(property, &format!("{path}.{name}"), found);
            }
        }
        None => drop(found.insert(path.to_owned())),
    }
}

#[test]
fn each_value_has_a_default_and_a_schema() {
    let schema = fs::read_to_string(chart().join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let (mut given, mut known) = (BTreeSet::new(), BTreeSet::new());
    fields(&yaml(chart().join("values.yaml")), &schema, "", &mut given);
    described(&schema, "", &mut known);
    // Parent charts set it, and it has no default.
    assert!(known.remove(".global"));
    assert_eq!(given, known);
}

/// A template that uses a value without a default would fail or render nothing.
#[test]
fn templates_use_each_value_and_no_other() {
    let mut files = vec![chart().join("templates")];
    let mut text = String::new();
    while let Some(path) = files.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => files.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => text.push_str(&fs::read_to_string(path).unwrap()),
        }
    }
    let used = text.split(".Values.").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        &rest[..end.unwrap_or(rest.len())]
    });
    let used: BTreeSet<&str> = used.collect();
    let values = yaml(chart().join("values.yaml"));
    let given: BTreeSet<&str> = values.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(used, given);
}
