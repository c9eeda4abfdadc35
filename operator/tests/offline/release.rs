//! The workflows of GitHub. The steps of a release that need nothing but the repository are in `cases/release.t`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use training_operator_testing::program::root;

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
