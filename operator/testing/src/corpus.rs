//! The jobs of all tests by file.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;

use crate::program::{empty_directory, root, run};

pub struct Manifest {
    /// The file, relative to the repository's root.
    pub file: String,
    /// One or more YAML documents, valid or not.
    pub text: String,
    /// The errors of `validate` without their positions, one line each. Empty if the manifest is valid.
    pub offline: Vec<String>,
}

/// Every manifest in the repository.
pub static ALL: LazyLock<Vec<Manifest>> = LazyLock::new(|| {
    let mut all = read();
    assert!(all.len() > 150, "{} manifests", all.len());
    let folder = empty_directory("admission");
    let name = |n: usize| folder.join(format!("{n}.yaml")).display().to_string();
    for (n, manifest) in all.iter().enumerate() {
        fs::write(name(n), &manifest.text).unwrap();
    }
    // Named one by one, because validate skips files of a directory that are not Kubernetes objects.
    let names: Vec<String> = (0..all.len()).map(name).collect();
    let arguments: Vec<&str> = ["validate"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let told = run(&arguments);
    // These concern the corpus and not a manifest.
    let of_all = ["metadata.name: duplicate job: ", "no training job found"];
    for (n, manifest) in all.iter_mut().enumerate() {
        let prefix = format!("{}:", name(n));
        let lines = told.stdout.lines().chain(told.stderr.lines());
        manifest.offline = lines
            .filter_map(|line| line.strip_prefix(&prefix))
            .map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'))
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.starts_with("warning: ") && !line.starts_with("note: "))
            .filter(|line| !of_all.iter().any(|of_all| line.starts_with(of_all)))
            .collect();
        manifest.offline.sort();
    }
    all
});

fn read() -> Vec<Manifest> {
    let manifests = [
        "examples/jax",
        "examples/mpi",
        "examples/mxnet",
        "examples/paddle",
        "examples/pytorch",
        "examples/tensorflow",
        "examples/xgboost",
        "frameworks/mxnet/tests/invalid",
        "frameworks/pytorch/tests/invalid",
        "operator/tests/cluster/admission/standalone",
        "operator/tests/bad",
        "operator/tests/cases",
        "operator/tests/tensorflow",
        "operator/tests/warned",
    ];
    let manifest = |file, text| Manifest {
        file,
        text,
        offline: Vec::new(),
    };
    let mut all: Vec<_> = manifests
        .into_iter()
        .flat_map(files)
        .filter_map(|(file, path)| Some(manifest(file, String::from_utf8(fs::read(path).unwrap()).ok()?)))
        .collect();
    all.extend(files("tests/compat/scenarios").into_iter().map(|(file, path)| {
        let scenario: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        manifest(file, scenario["job"].to_string())
    }));
    all
}

fn files(folder: &str) -> Vec<(String, PathBuf)> {
    let mut files: Vec<_> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            (format!("{folder}/{name}"), path.clone())
        })
        .collect();
    files.sort();
    files
}
