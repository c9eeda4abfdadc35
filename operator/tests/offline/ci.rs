//! Runs the commands of `examples/ci` on a sample change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use training_operator_testing::program::{empty_directory, root, run_in};

/// Runs a shell command in a repository, with the built program first in the path.
fn shell(repository: &Path, command: &str, base: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_training-operator"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-ec", command])
        .current_dir(repository)
        .env("PATH", path)
        .env("BASE", base)
        .output()
        .unwrap()
}

/// Returns the command of a step of the workflow.
fn step(name: &str) -> String {
    let text = fs::read_to_string(root().join("examples/ci/review.yaml")).unwrap();
    let workflow: Value = serde_saphyr::from_str(&text).unwrap();
    let steps = workflow["jobs"]["review"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == name).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

fn commit(repository: &Path) -> String {
    let command = "git add . && git -c user.name=A -c user.email=a@example.com commit --quiet -m x && git rev-parse HEAD";
    let done = shell(repository, command, "");
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Creates a repository with a job and its snapshot. Returns its path and its first commit.
fn repository(name: &str) -> (PathBuf, String) {
    let repository = empty_directory(name);
    fs::create_dir(repository.join("jobs")).unwrap();
    let job = root().join("operator/tests/cases/sidecar-and-init.yaml");
    fs::copy(job, repository.join("jobs/job.yaml")).unwrap();
    assert!(shell(&repository, "git init --quiet", "").status.success());
    update_snapshots(&repository);
    let base = commit(&repository);
    (repository, base)
}

fn update_snapshots(repository: &Path) {
    let run = run_in(repository, &["snapshot", "jobs", "--dir", "snapshots"], b"");
    assert_eq!(run.code, Some(0), "{run:?}");
}

fn change(repository: &Path, from: &str, to: &str) {
    let file = repository.join("jobs/job.yaml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from));
    fs::write(&file, text.replace(from, to)).unwrap();
}

#[test]
fn the_workflow_reviews_a_change() {
    let (repository, base) = repository("ci-workflow");
    let run = |name| shell(&repository, &step(name), &base);
    for name in ["Validate", "Diff", "Snapshots"] {
        assert!(run(name).status.success(), "{name}: {:?}", run(name));
    }
    change(&repository, "tensorboard:2", "tensorboard:3");
    assert!(run("Validate").status.success());
    assert!(run("Diff").status.success(), "{:?}", run("Diff"));
    let comment = fs::read_to_string(repository.join("comment.md")).unwrap();
    assert!(comment.contains("+    image: tensorboard:3"), "{comment}");
    assert_eq!(run("Snapshots").status.code(), Some(1));
    update_snapshots(&repository);
    assert!(run("Snapshots").status.success());

    change(&repository, "restartPolicy: Never", "restartPolicy: Nevr");
    assert_eq!(run("Validate").status.code(), Some(1));
    let annotated = String::from_utf8(run("Validate").stdout).unwrap();
    assert!(
        annotated.starts_with("::error file=jobs/job.yaml,line="),
        "{annotated}"
    );
    assert_eq!(run("Diff").status.code(), Some(1), "a bad job fails the step");
}

#[test]
fn the_hook_refuses_bad_jobs_and_stale_snapshots() {
    let (repository, _) = repository("ci-hook");
    let hook = fs::read_to_string(root().join("examples/ci/pre-commit")).unwrap();
    let run = || shell(&repository, &hook, "").status.code();
    assert_eq!(run(), Some(0));
    change(&repository, "tensorboard:2", "tensorboard:3");
    assert_eq!(run(), Some(1));
    update_snapshots(&repository);
    assert_eq!(run(), Some(0));
    change(&repository, "kind: MXJob", "kind: MXJob\nspek: {}");
    assert_eq!(run(), Some(1));
}
