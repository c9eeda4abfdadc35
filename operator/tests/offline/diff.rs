//! `training-operator diff`.

use std::fs;
use std::path::Path;
use std::process::Command;

use training_operator_testing::program::{empty_directory, root, run, run_in};

const CASE: &str = "operator/tests/cases/sidecar-and-init.yaml";

fn case() -> String {
    fs::read_to_string(root().join(CASE)).unwrap()
}

/// Writes the case to a file with `from` replaced by `to`. Returns the file.
fn changed(name: &str, from: &str, to: &str) -> String {
    let text = case();
    assert!(text.contains(from));
    let file = empty_directory(name).join("job.yaml");
    fs::write(&file, text.replace(from, to)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn the_same_is_no_difference() {
    let same = run(&["diff", CASE, CASE]);
    assert_eq!(
        (same.code, same.stdout.as_str(), same.stderr.as_str()),
        (Some(0), "", "")
    );
    // A difference in form only is no difference.
    let comments = changed("diff-comment", "kind: MXJob", "kind: MXJob # a comment");
    assert_eq!(run(&["diff", CASE, &comments]).code, Some(0));
    let markdown = run(&["diff", CASE, CASE, "--format", "markdown"]);
    assert!(markdown.stdout.contains("Nothing changes"));
}

#[test]
fn a_changed_image_is_shown_in_its_pods_only() {
    let image = changed("diff-image", "tensorboard:2", "tensorboard:3");
    let run = run(&["diff", CASE, &image]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!(run.stdout);
}

#[test]
fn replicas_that_change_alike_stand_together() {
    let many = case().replace("    Worker:\n", "    Worker:\n      replicas: 3\n");
    let old = empty_directory("diff-many").join("job.yaml");
    fs::write(&old, &many).unwrap();
    let new = empty_directory("diff-many-new").join("job.yaml");
    fs::write(&new, many.replace("tensorboard:2", "tensorboard:3")).unwrap();
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let text = run(&["diff", old, new]).stdout;
    assert!(text.ends_with("3 changed, 0 added, 0 removed\n"), "{text}");
    let markdown = run(&["diff", old, new, "--format", "markdown"]);
    assert_eq!(markdown.code, Some(1));
    insta::assert_snapshot!(markdown.stdout);
}

#[test]
fn replicas_come_and_go() {
    let more = changed("diff-more", "    Worker:\n", "    Worker:\n      replicas: 2\n");
    let grown = run(&["diff", CASE, &more]).stdout;
    assert!(grown.contains("Service sidecar-worker-1 is added\n"), "{grown}");
    assert!(grown.ends_with("2 changed, 2 added, 0 removed\n"), "{grown}");
    let shrunk = run(&["diff", &more, CASE]).stdout;
    assert!(shrunk.contains("Pod sidecar-worker-1 is removed\n"), "{shrunk}");
    let all = run(&["diff", CASE, "/dev/null"]);
    assert!(
        all.stdout.ends_with("0 changed, 0 added, 4 removed\n"),
        "{}",
        all.stdout
    );
}

#[test]
fn the_operators_settings_are_those_of_both_sides() {
    let two = changed("diff-gang", "    Worker:\n", "    Worker:\n      replicas: 2\n");
    let grown = run(&["diff", CASE, &two, "--gang-scheduler-name", "volcano"]).stdout;
    assert!(grown.contains("PodGroup sidecar changes\n"), "{grown}");
    assert!(grown.contains("+  minMember: "), "{grown}");
}

#[test]
fn what_cannot_be_compared_ends_with_2() {
    for (old, new) in [
        (CASE, "no/such.yaml"),
        ("operator/tests/bad/no-worker.yaml", CASE),
        ("no-such-revision:jobs", CASE),
        ("HEAD:no/such.yaml", CASE),
    ] {
        let run = run(&["diff", old, new]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{old} {new}");
        assert!(!run.stderr.is_empty());
    }
    assert_eq!(run(&["diff", CASE]).code, Some(2));
}

fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    let done = Command::new("git")
        .current_dir(directory)
        .args(identity)
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn revisions_are_compared_with_files() {
    let repository = empty_directory("diff-repository");
    git(&repository, &["init", "--quiet"]);
    fs::create_dir_all(repository.join("jobs/deep")).unwrap();
    fs::write(repository.join("jobs/deep/a b.yaml"), case()).unwrap();
    fs::write(repository.join("jobs/README.md"), "no job").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "--message", "A job"]);
    let diff = |old: &str, new: &str| run_in(&repository, &["diff", old, new], b"");
    assert_eq!(
        diff("HEAD:jobs", "jobs").code,
        Some(0),
        "{:?}",
        diff("HEAD:jobs", "jobs")
    );

    fs::write(
        repository.join("jobs/deep/a b.yaml"),
        case().replace("tensorboard:2", "tensorboard:3"),
    )
    .unwrap();
    for old in ["HEAD:jobs", "HEAD:jobs/", "HEAD:", "HEAD:jobs/deep/a b.yaml"] {
        let run = diff(old, "jobs");
        assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""), "{old}");
        assert!(
            run.stdout.contains("+    image: tensorboard:3"),
            "{old}: {}",
            run.stdout
        );
    }
    git(
        &repository,
        &["commit", "--quiet", "--all", "--message", "Another image"],
    );
    assert_eq!(diff("HEAD~1:jobs", "HEAD:jobs").code, Some(1));
    assert_eq!(diff("HEAD:jobs", "jobs").code, Some(0));
}
