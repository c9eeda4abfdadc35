//! `training-operator new-kind`. `make test-example` builds the package of another kind and runs its tests.

use std::fs;

use training_operator_testing::program::{empty_directory, root, run};

/// The template is the example, so a package of the example's names is the example.
#[test]
fn the_package_of_the_example_is_the_example() {
    let directory = empty_directory("new-kind").join("farm-operator");
    let written = run(&["new-kind", "FarmJob", directory.to_str().unwrap()]);
    assert_eq!((written.code, written.stderr.as_str()), (Some(0), ""));
    for file in [
        ".gitignore",
        "Dockerfile",
        "README.md",
        "crd.yaml",
        "jobs/farm.py",
        "snapshots/primes.snap",
        "tests/local.rs",
    ] {
        let example = root().join("examples/add-a-framework").join(file);
        let text = fs::read_to_string(directory.join(file)).unwrap();
        assert_eq!(text, fs::read_to_string(example).unwrap(), "{file}");
    }
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
    assert!(
        !manifest.contains("path =") && !manifest.contains("testbed"),
        "{manifest}"
    );
    assert!(
        manifest.contains("training-job = { git = \"https://"),
        "{manifest}"
    );
    let again = run(&["new-kind", "FarmJob", directory.to_str().unwrap()]);
    assert_eq!(again.code, Some(2));
    assert!(
        again.stderr.contains("exists and is not empty"),
        "{}",
        again.stderr
    );
}

#[test]
fn names_are_those_of_the_kind() {
    let directory = empty_directory("new-kind-named");
    let directory = directory.to_str().unwrap();
    let written = run(&[
        "new-kind",
        "DeepHiveJob",
        directory,
        "--group",
        "hive.example.org",
    ]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    for file in [
        "src/job.rs",
        "src/main.rs",
        "jobs/primes.yaml",
        "tests/story.rs",
        "Cargo.toml",
        "Dockerfile",
        "README.md",
    ] {
        let text = fs::read_to_string(root().join(directory).join(file)).unwrap();
        let lower = text.to_lowercase();
        assert!(
            !lower.contains("farm") && !lower.contains("region: "),
            "{file}: {text}"
        );
    }
    assert!(root().join(directory).join("jobs/deephive.py").is_file());
    let job = fs::read_to_string(root().join(directory).join("src/job.rs")).unwrap();
    assert!(
        job.contains("group = \"hive.example.org\"") && job.contains("DEEPHIVE_HEAD"),
        "{job}"
    );
}

#[test]
fn bad_names_are_rejected() {
    for kind in ["Hive", "hiveJob", "Job", "2Job", "HoneyBeeHiveJob", "Hi-veJob"] {
        let refused = run(&["new-kind", kind, "target/never"]);
        assert_eq!(refused.code, Some(2), "{kind}");
        assert!(refused.stderr.contains("followed by Job"), "{}", refused.stderr);
    }
    let refused = run(&["new-kind", "HiveJob", "target/never", "--group", "local"]);
    assert!(refused.stderr.contains("must be a domain"), "{}", refused.stderr);
}
