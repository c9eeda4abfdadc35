//! Runs the commands of the action and of `examples/ci` on a sample change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use training_operator_testing::program::{empty_directory, root, run_in};

/// Runs a shell command in a repository, with the built program first in the path.
fn shell(repository: &Path, command: &str, base: &str) -> Output {
    shell_for(repository, "jobs", command, base)
}

/// Runs a shell command, with this value of the action's input `path`.
fn shell_for(repository: &Path, jobs: &str, command: &str, base: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_training-operator"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    Command::new("sh")
        .args(["-ec", command])
        .current_dir(repository)
        .env("PATH", path)
        .env("BASE", base)
        .env("JOBS", jobs)
        .env("SNAPSHOTS", "snapshots")
        .env("RUNNER_TEMP", repository)
        .output()
        .unwrap()
}

/// Returns the command of a step of the action.
fn step(name: &str) -> String {
    let text = fs::read_to_string(root().join("action.yaml")).unwrap();
    let action: Value = serde_saphyr::from_str(&text).unwrap();
    let steps = action["runs"]["steps"].as_array().unwrap();
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

/// actionlint knows the expressions and contexts of GitHub, and the inputs of the action.
#[test]
fn the_workflows_and_the_action_fit_each_other() {
    let repository = empty_directory("ci-actionlint");
    let workflows = repository.join(".github/workflows");
    let action = repository.join(".training-operator");
    fs::create_dir_all(&workflows).unwrap();
    fs::create_dir_all(&action).unwrap();
    fs::copy(
        root().join("examples/ci/review.yaml"),
        workflows.join("review.yaml"),
    )
    .unwrap();
    for name in ["ci.yaml", "release.yaml"] {
        fs::copy(root().join(".github/workflows").join(name), workflows.join(name)).unwrap();
    }
    fs::copy(root().join("action.yaml"), action.join("action.yaml")).unwrap();
    assert!(shell(&repository, "git init --quiet", "").status.success());
    let actionlint = root().join("target/actionlint/actionlint");
    let lint = || {
        Command::new(&actionlint)
            .current_dir(&repository)
            .output()
            .unwrap()
    };
    assert!(lint().status.success(), "{lint:?}", lint = lint());
    let text = fs::read_to_string(workflows.join("review.yaml")).unwrap();
    fs::write(
        workflows.join("review.yaml"),
        text.replace("path: jobs", "files: jobs"),
    )
    .unwrap();
    assert_eq!(lint().status.code(), Some(1), "an input that the action lacks");
}

/// The program that the action builds is found by its key, which changes with the code.
#[test]
fn the_action_builds_the_program_only_if_it_is_missing() {
    let repository = empty_directory("ci-find");
    fs::write(repository.join("lib.rs"), "").unwrap();
    let outputs = |path: &str| {
        let output = repository.join("output");
        fs::write(&output, "").unwrap();
        let find = Command::new("bash")
            .args(["-ec", &step("Find the program")])
            .env("ACTION", &repository)
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_PATH", "/dev/null")
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(find.status.success(), "{find:?}");
        fs::read_to_string(output).unwrap()
    };
    let program = Path::new(env!("CARGO_BIN_EXE_training-operator"))
        .parent()
        .unwrap();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(
        outputs(&format!("{}:{path}", program.display())),
        "installed=true\n"
    );
    let missing = outputs("/usr/bin:/bin");
    assert!(missing.starts_with("installed=false\nkey="), "{missing}");
    assert_eq!(outputs("/usr/bin:/bin"), missing);
    fs::write(repository.join("lib.rs"), "// Changed.").unwrap();
    assert_ne!(outputs("/usr/bin:/bin"), missing);
}

#[test]
fn the_action_reviews_a_change() {
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
fn the_action_reviews_a_whole_repository_in_a_shallow_clone() {
    let (origin, base) = repository("ci-whole");
    change(&origin, "tensorboard:2", "tensorboard:3");
    commit(&origin);
    let clone = empty_directory("ci-whole-clone");
    let url = format!("git clone --quiet --depth=1 file://{} .", origin.display());
    assert!(shell(&clone, &url, "").status.success());
    let run = shell_for(&clone, ".", &step("Diff"), &base);
    assert!(run.status.success(), "{run:?}");
    let comment = fs::read_to_string(clone.join("comment.md")).unwrap();
    assert!(comment.contains("+    image: tensorboard:3"), "{comment}");
    assert!(!comment.contains("does not exist"), "{comment}");
}

/// Returns the words that pre-commit runs for the hook: those of a script of this repository, and the arguments.
fn pre_commit_words() -> Vec<String> {
    let text = fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    let hooks: Value = serde_saphyr::from_str(&text).unwrap();
    let hook = &hooks[0];
    assert_eq!(hook["language"], "script");
    let mut words: Vec<String> = hook["entry"]
        .as_str()
        .unwrap()
        .split(' ')
        .map(str::to_owned)
        .collect();
    words.extend(
        hook["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().to_owned()),
    );
    words
}

#[test]
fn the_hook_of_pre_commit_runs_the_installed_program() {
    let (repository, _) = repository("ci-pre-commit");
    let words = pre_commit_words();
    let command = format!("{}/{}", root().display(), words.join(" "));
    let run = || shell(&repository, &command, "");
    assert!(run().status.success(), "{:?}", run());
    change(&repository, "kind: MXJob", "kind: MXJob\nspek: {}");
    assert_eq!(run().status.code(), Some(1), "{:?}", run());
}

/// A stand-in for cargo installs what the real one would: the programs of the package in the folder.
#[test]
fn the_hook_of_pre_commit_builds_a_missing_program_once() {
    let checkout = empty_directory("ci-pre-commit-build");
    for folder in ["tools", "operator/src", "bin"] {
        fs::create_dir_all(checkout.join(folder)).unwrap();
    }
    fs::copy(
        root().join("operator/src/main.rs"),
        checkout.join("operator/src/main.rs"),
    )
    .unwrap();
    fs::copy(
        root().join("tools/pre-commit-hook"),
        checkout.join("tools/pre-commit-hook"),
    )
    .unwrap();
    fs::copy(
        root().join("operator/Cargo.toml"),
        checkout.join("operator/Cargo.toml"),
    )
    .unwrap();
    let cargo = "#!/bin/sh\necho built >>\"$LOG\"\nwhile [ $# -gt 0 ]; do case $1 in --root) to=$2;; --path) from=$2;; esac; shift; done\n\
                 [ -f \"$from/src/main.rs\" ] || exit 101\n\
                 name=$(sed -n 's/^name = \"\\(.*\\)\"/\\1/p' \"$from/Cargo.toml\" | head -n 1)\n\
                 mkdir -p \"$to/bin\"; printf '#!/bin/sh\\necho \"ran $*\"\\n' >\"$to/bin/$name\"; chmod +x \"$to/bin/$name\"\n";
    fs::write(checkout.join("bin/cargo"), cargo).unwrap();
    assert!(shell(&checkout, "chmod +x bin/cargo", "").status.success());
    let words = pre_commit_words();
    for _ in 0..2 {
        let run = Command::new(checkout.join(&words[0]))
            .args(&words[1..])
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", checkout.join("bin").display()),
            )
            .env("LOG", checkout.join("log"))
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
    }
    assert_eq!(fs::read_to_string(checkout.join("log")).unwrap(), "built\n");
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
