//! The committed definitions equal the program's output, and are small and structural.

use std::fs;

use serde_json::Value;
use training_operator_testing::program::{root, run};

/// Client-side `kubectl apply` stores the whole object in an annotation of at most 256 KiB. Also, people should be
/// able to open the file.
const MAX_BYTES: usize = 130_000;

#[test]
fn committed_definitions_are_current() {
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        for (folder, kinds) in FOLDERS {
            let arguments = [&["crd", "--dir", folder], kinds].concat();
            let written = run(&arguments);
            assert_eq!(written.code, Some(0), "{}", written.stderr);
        }
    }
    for (folder, kinds) in FOLDERS {
        let files = fs::read_dir(root().join(folder)).unwrap();
        let mut files: Vec<_> = files
            .map(|e| e.unwrap().path())
            .filter(|file| file.extension().is_some())
            .collect();
        files.sort();
        let committed: String = files.iter().map(|f| fs::read_to_string(f).unwrap()).collect();
        let printed = run(&[&["crd"], kinds].concat()).stdout;
        assert!(
            committed == printed,
            "{folder} is stale; run: UPDATE_SNAPSHOTS=1 cargo test -p training-operator --test offline crds::"
        );
        for file in files {
            let bytes = fs::metadata(&file).unwrap().len();
            assert!(bytes < MAX_BYTES as u64, "{} has {bytes} bytes", file.display());
        }
    }
}

/// The folders of definitions, and the flags that select the kinds of each. The cluster may have the separate
/// mpi-operator, whose definition of MPIJobs has the same name; and few clusters have jobs of the kinds of 2017.
const FOLDERS: [(&str, &[&str]); 3] = [
    ("crds", &[]),
    ("crds/mpi", &["--kind", "MPIJob"]),
    ("crds/mlkube", &["--kind=MxJob", "--kind", "TfJob"]),
];

#[test]
fn kustomize_brings_the_definitions_of_each_folder() {
    for (folder, kinds) in FOLDERS {
        let kustomization = fs::read_to_string(root().join(folder).join("Kustomization")).unwrap();
        let kustomization: Value = serde_saphyr::from_str(&kustomization).unwrap();
        let mut brought: Vec<String> = serde_json::from_value(kustomization["resources"].clone()).unwrap();
        brought.retain(|file| file.ends_with(".yaml"));
        brought.sort();
        let name = |definition: Value| {
            let spec = &definition["spec"];
            let (group, plural) = (spec["group"].as_str(), spec["names"]["plural"].as_str());
            format!("{}_{}.yaml", group.unwrap(), plural.unwrap())
        };
        let mut all: Vec<String> = definitions(kinds).into_iter().map(name).collect();
        all.sort();
        assert_eq!(brought, all, "{folder}");
    }
}

#[test]
fn an_api_server_accepts_the_definitions() {
    for definition in FOLDERS.into_iter().flat_map(|(_, kinds)| definitions(kinds)) {
        assert_eq!(definition["spec"]["preserveUnknownFields"], Value::Null);
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let stored: Vec<_> = versions.iter().filter(|v| v["storage"] == true).collect();
        assert_eq!(stored.len(), 1, "one version is stored");
        // The kinds of mlkube.io have only one version.
        let is_old = definition["spec"]["group"] != "kubeflow.org";
        assert_eq!(stored[0]["name"], if is_old { "v1beta1" } else { "v1" });
        for version in versions {
            assert_eq!(version["served"], true);
            assert!(version["subresources"]["status"].is_object());
            let schema = &version["schema"]["openAPIV3Schema"];
            assert_eq!(schema["type"], "object");
            check_structural(schema, &version["name"].to_string());
        }
    }
}

#[test]
fn mxjob_has_the_versions_that_manifests_use() {
    let all = definitions(&[]);
    let is_mxjobs = |definition: &&Value| definition["metadata"]["name"] == "mxjobs.kubeflow.org";
    let definition = all.iter().find(is_mxjobs).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let names: Vec<_> = versions.iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["v1", "v1beta1", "v1alpha2"]);
    let spec = &versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(
        spec["runPolicy"]["properties"]["suspend"]["default"], false,
        "as under the Go operator"
    );
    assert_eq!(
        spec["jobMode"]["default"], "MXTrain",
        "queues know no role of a job without it"
    );
    assert!(
        spec["jobMode"]["description"].is_string(),
        "our fields are described"
    );
    let role = &spec["mxReplicaSpecs"]["additionalProperties"]["properties"];
    assert!(role["template"]["description"].is_string());
    let containers = &role["template"]["properties"]["spec"]["properties"]["containers"];
    assert!(
        !containers.to_string().contains("\"description\":\""),
        "Kubernetes' own are not"
    );
    let limits = &containers["items"]["properties"]["resources"]["properties"]["limits"];
    assert_eq!(limits["additionalProperties"]["x-kubernetes-int-or-string"], true);
}

fn definitions(kinds: &[&str]) -> Vec<Value> {
    serde_saphyr::from_multiple(&run(&[&["crd"], kinds].concat()).stdout).unwrap()
}

/// Checks the rules of structural schemas that this operator's schemas could violate.
fn check_structural(schema: &Value, path: &str) {
    let members = schema.as_object().unwrap();
    for (key, value) in members {
        let known = [
            "additionalProperties",
            "default",
            "description",
            "enum",
            "format",
            "items",
            "maxItems",
            "maxLength",
            "maxProperties",
            "maximum",
            "minItems",
            "minimum",
            "nullable",
            "pattern",
            "properties",
            "required",
            "type",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-validations",
        ];
        assert!(known.contains(&key.as_str()), "{path}: {key}: {value}");
    }
    let int_or_string = members.contains_key("x-kubernetes-int-or-string");
    let takes_anything = members.contains_key("x-kubernetes-preserve-unknown-fields");
    let has_type = members.contains_key("type");
    assert!(
        int_or_string != has_type || (takes_anything && !has_type),
        "{path}: a type, or int-or-string, or anything"
    );
    assert!(
        !(members.contains_key("properties") && members.contains_key("additionalProperties")),
        "{path}"
    );
    if let Some(format) = members.get("format") {
        assert!(
            ["int32", "int64", "date-time"].contains(&format.as_str().unwrap()),
            "{path}: {format}"
        );
    }
    for (name, property) in members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        check_structural(property, &format!("{path}.{name}"));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = members.get(key) {
            check_structural(part, &format!("{path}.{key}"));
        }
    }
}
