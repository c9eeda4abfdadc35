//! The workflows of GitHub, and the steps of a release that need nothing but the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use training_operator_testing::program::{empty_directory, root};

/// Returns the workflows by their file names.
fn workflows() -> Vec<(String, Value)> {
    let files = fs::read_dir(root().join(".github/workflows")).unwrap();
    let mut workflows: Vec<(String, Value)> = files
        .map(|file| {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, serde_saphyr::from_str(&text).unwrap())
        })
        .collect();
    workflows.sort_by(|a, b| a.0.cmp(&b.0));
    let names: Vec<_> = workflows.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["ci.yaml", "release.yaml"]);
    workflows
}

/// Returns the values of a key in the steps of all workflows, with the file.
fn in_steps(key: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (file, workflow) in workflows() {
        for job in workflow["jobs"].as_object().unwrap().values() {
            for step in job["steps"].as_array().into_iter().flatten() {
                if let Some(value) = step[key].as_str() {
                    found.push((file.clone(), value.to_owned()));
                }
            }
        }
    }
    assert!(found.len() > 10, "{key}: {found:?}");
    found
}

/// A tag of an action can be moved, a commit cannot.
#[test]
fn every_action_is_pinned_by_its_commit() {
    for (file, uses) in in_steps("uses") {
        let (_, commit) = uses.split_once('@').unwrap();
        let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
        assert!(is_commit, "{file}: {uses}");
    }
}

#[test]
fn no_job_may_write_but_those_of_a_release_that_need_it() {
    for (file, workflow) in workflows() {
        assert_eq!(
            workflow["permissions"],
            serde_json::json!({"contents": "read"}),
            "{file}"
        );
        let mut writes = BTreeSet::new();
        for (name, job) in workflow["jobs"].as_object().unwrap() {
            let granted = job["permissions"].as_object().into_iter().flatten();
            let write = granted.filter(|(_, access)| *access == "write");
            writes.extend(write.map(|(scope, _)| format!("{name} {scope}")));
        }
        let expected: &[&str] = match &*file {
            "release.yaml" => &[
                "announce contents",
                "files attestations",
                "files id-token",
                "registry attestations",
                "registry id-token",
                "registry packages",
            ],
            _ => &[],
        };
        assert!(writes.iter().eq(expected), "{file}: {writes:?}");
    }
}

/// actionlint does not look into the commands.
#[test]
fn commands_name_scripts_and_targets_that_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let release = fs::read_to_string(root().join("tools/release.sh")).unwrap();
    let mut seen = BTreeSet::new();
    for (file, run) in in_steps("run") {
        let words: Vec<&str> = run
            .split(|c: char| c.is_whitespace() || "$();\"".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        for (n, word) in words.iter().enumerate() {
            let next = words.get(n + 1).copied().unwrap_or_default();
            if *word == "make" {
                assert!(makefile.contains(&format!("\n{next}:")), "{file}: make {next}");
            } else if word.starts_with("tools/") || word.starts_with("tests/") {
                seen.insert((*word).to_owned());
                assert!(root().join(word).is_file(), "{file}: {word}");
                if *word == "tools/release.sh" {
                    assert!(release.contains(&format!("\n{next})\n")), "{file}: {word} {next}");
                    seen.insert(format!("release.sh {next}"));
                }
            }
        }
    }
    for step in ["tag", "files", "push", "notes"] {
        assert!(seen.contains(&format!("release.sh {step}")), "{step}: {seen:?}");
    }
}

fn release(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(directory.join("tools/release.sh"))
        .args(arguments)
        .output()
        .unwrap()
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Creates a folder with what the step `tag` reads, as it is in a commit that is released.
fn released(name: &str) -> PathBuf {
    let folder = empty_directory(name);
    let write = |file: &str, text: String| {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    for file in ["Cargo.toml", "manifests/base/deployment.yaml"] {
        write(file, read(file));
    }
    let version = version();
    write(
        "manifests/helm/training-operator/Chart.yaml",
        format!("version: {version}\nappVersion: \"{version}\"\n"),
    );
    let changes = read("CHANGELOG.md");
    let (before, after) = changes.split_once("## [Unreleased]\n").unwrap();
    // Until the first release, or with the section of a release below.
    let after = after.split("\n## [").next().unwrap();
    let changes = format!(
        "{before}## [Unreleased]\n\n## [{version}] - 2026-01-31\n{after}\n## [0.0.9] - 2025-01-01\n\nOld.\n"
    );
    write("CHANGELOG.md", changes);
    fs::create_dir(folder.join("tools")).unwrap();
    fs::copy(root().join("tools/release.sh"), folder.join("tools/release.sh")).unwrap();
    folder
}

#[test]
fn a_tag_is_released_only_if_all_have_its_version() {
    let folder = released("release-tag");
    let tag = format!("v{}", version());
    let check = || release(&folder, &["tag", &tag]);
    assert!(check().status.success(), "{:?}", check());
    let expect = |output: Output, problem: &str| {
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.starts_with("release: ") && errors.contains(problem),
            "{errors}"
        );
    };
    expect(
        release(&folder, &["tag", "v9.9.9"]),
        &format!("the tag is v9.9.9, but Cargo.toml has version {}", version()),
    );
    let version = version();
    for (file, from, to, problem) in [
        (
            "manifests/base/deployment.yaml",
            format!("training-operator:{version}"),
            "training-operator:9.9.9".to_owned(),
            "names the image of 9.9.9",
        ),
        (
            "manifests/helm/training-operator/Chart.yaml",
            format!("appVersion: \"{version}\""),
            "appVersion: 9.9.9".to_owned(),
            "has appVersion 9.9.9",
        ),
        (
            "CHANGELOG.md",
            format!("## [{version}] - 2026-01-31"),
            format!("## [{version}]"),
            "CHANGELOG.md has no section",
        ),
        (
            "CHANGELOG.md",
            format!("## [{version}] - 2026-01-31\n"),
            format!("## [{version}] - 2026-01-31\n\n## [0.0.10] - 2026-01-30\n"),
            "is empty",
        ),
    ] {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&from), "{file}: {from}");
        fs::write(&path, text.replace(&from, &to)).unwrap();
        expect(check(), problem);
        fs::write(&path, text).unwrap();
    }
    assert!(check().status.success(), "{:?}", check());
}

#[test]
fn the_notes_of_a_version_are_its_section_of_the_changelog() {
    let folder = released("release-notes");
    let notes = release(&folder, &["notes"]);
    assert!(notes.status.success(), "{notes:?}");
    let notes = String::from_utf8(notes.stdout).unwrap();
    let changes = fs::read_to_string(folder.join("CHANGELOG.md")).unwrap();
    let (_, section) = changes.split_once("] - 2026-01-31\n").unwrap();
    let (section, _) = section.split_once("## [0.0.9]").unwrap();
    assert_eq!(notes.trim(), section.trim());
    assert!(notes.len() > 1000, "{notes}");
    let old = release(&folder, &["notes", "0.0.9"]);
    assert_eq!(String::from_utf8(old.stdout).unwrap(), "Old.\n");
    // The points of a version must match literally.
    let none = release(&folder, &["notes", "0.0x9"]);
    assert_eq!(none.status.code(), Some(1));
    let errors = String::from_utf8(none.stderr).unwrap();
    assert_eq!(errors, "release: CHANGELOG.md has no section of 0.0x9\n");
}
