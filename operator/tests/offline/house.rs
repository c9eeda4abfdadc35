//! Rules of the project that can be checked by reading its files.

use std::fs;
use std::path::PathBuf;

use training_operator_testing::program::root;

/// Returns the files of the project with one of these endings.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "{endings:?}");
    found
}

#[test]
fn every_snapshot_belongs_to_a_test_and_is_reviewed() {
    for path in files(&[".snap", ".snap.new"]) {
        assert!(
            !path.to_string_lossy().ends_with(".new"),
            "{path:?} waits for review"
        );
        // The frameworks compare these and report surplus ones.
        let by_frameworks = [
            "snapshots",
            "examples/add-a-framework/snapshots",
            "examples/ray-train/snapshots",
        ];
        if by_frameworks
            .iter()
            .any(|folder| path.starts_with(root().join(folder)))
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let header = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(root().join(value.trim().trim_matches('"')))
        };
        let source = fs::read_to_string(header("source:").unwrap()).unwrap_or_default();
        let stem = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = stem.trim_end_matches(".snap").rsplit("__").next().unwrap();
        let test = name.split('@').next().unwrap();
        assert!(
            source.contains(&format!("fn {test}(")),
            "{path:?} belongs to no test; remove it"
        );
        if let Some(input) = header("input_file:") {
            assert!(
                input.exists(),
                "{path:?} was made from {input:?}, which is gone; remove it"
            );
        }
    }
}

#[test]
fn no_test_is_skipped() {
    let mark = ["#[ig", "nore"].concat();
    for path in files(&[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&mark), "{path:?} has a test that does not run");
    }
}

#[test]
fn the_library_names_no_framework() {
    let names = [
        "mxnet",
        "mxjob",
        "tensorflow",
        "pytorch",
        "xgboost",
        "paddle",
        "jax",
    ];
    for path in files(&[".rs"])
        .into_iter()
        .filter(|p| p.starts_with(root().join("src")))
    {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let named = names.iter().find(|name| line.to_lowercase().contains(*name));
            assert!(named.is_none(), "{path:?}: {line}");
        }
    }
}

/// The example uses the compiled dependencies of the other packages, and is tested with the same versions.
#[test]
fn the_example_is_locked_to_the_same_versions() {
    let packages = |file: &str| {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let packages = text.split("[[package]]").skip(1);
        // Name, version, source and checksum. The dependencies follow from the features.
        let heads = packages.map(|p| p.split("dependencies = [").next().unwrap().trim().to_owned());
        heads.collect::<Vec<_>>()
    };
    let ours = packages("Cargo.lock");
    for package in packages("examples/add-a-framework/Cargo.lock") {
        let is_itself = package.starts_with("name = \"farm-operator\"");
        assert!(
            is_itself || ours.contains(&package),
            "examples/add-a-framework/Cargo.lock: copy Cargo.lock there and run cargo tree\n{package}"
        );
    }
}

/// The image contains nothing that runs jobs without a cluster, `make run` compiles nothing of local clusters, of stories and of
/// `kubectl training`, and the program for reviews has no client and no async runtime.
#[test]
fn programs_with_fewer_features_need_fewer_packages() {
    let packages = |arguments: &[&str]| {
        let mut tree = std::process::Command::new(env!("CARGO"));
        tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none"]);
        tree.args(["--format", "{lib}", "--package"]).args(arguments);
        let found = tree.current_dir(root()).output().unwrap();
        assert!(
            found.status.success(),
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
        let names = String::from_utf8(found.stdout).unwrap();
        names
            .lines()
            .map(str::to_owned)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let all = packages(&["training-operator"]);
    let shipped = packages(&[
        "training-operator",
        "--no-default-features",
        "--features",
        "cluster",
    ]);
    let local_run = packages(&[
        "training-operator",
        "--no-default-features",
        "--features",
        "local",
    ]);
    let review = packages(&["training-review"]);
    for left_out in ["cel", "libsqlite3_sys", "rcgen", "rusqlite"] {
        assert!(all.contains(left_out), "{left_out}: not even with all features");
        assert!(!local_run.contains(left_out), "{left_out} in make run");
        assert!(!shipped.contains(left_out), "{left_out} in the image");
    }
    for left_out in ["kube_memory", "training_job_local"] {
        assert!(local_run.contains(left_out), "{left_out}: not even in make run");
        assert!(!shipped.contains(left_out), "{left_out} in the image");
    }
    for left_out in [
        "maud",
        "training_job_kubectl",
        "training_job_story",
        "tungstenite",
    ] {
        assert!(shipped.contains(left_out), "{left_out}: not even in the image");
        assert!(!local_run.contains(left_out), "{left_out} in make run");
    }
    for left_out in [
        "hyper",
        "kube_client",
        "rustls",
        "tokio",
        "training_job_client",
        "training_job_controller",
    ] {
        assert!(shipped.contains(left_out), "{left_out}: not even in the image");
        assert!(
            !review.contains(left_out),
            "{left_out} in the program for reviews"
        );
    }
}
