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
fn equal_jobs_have_no_differences() {
    let same = run(&["diff", CASE, CASE]);
    assert_eq!(
        (same.code, same.stdout.as_str(), same.stderr.as_str()),
        (Some(0), "", "")
    );
    // A difference in form only is no difference.
    let comments = changed("diff-comment", "kind: MXJob", "kind: MXJob # a comment");
    assert_eq!(run(&["diff", CASE, &comments]).code, Some(0));
    let markdown = run(&["diff", CASE, CASE, "--output", "markdown"]);
    assert!(
        markdown
            .stdout
            .contains("Nothing changes in the rules and objects of the jobs.")
    );
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
    assert!(
        text.ends_with("Jobs that differ: 1. Objects: 3 changed, 0 added, 0 removed.\n"),
        "{text}"
    );
    let markdown = run(&["diff", old, new, "--output", "markdown"]);
    assert_eq!(markdown.code, Some(1));
    insta::assert_snapshot!(markdown.stdout);
}

#[test]
fn replicas_come_and_go() {
    let more = changed("diff-more", "    Worker:\n", "    Worker:\n      replicas: 2\n");
    let grown = run(&["diff", CASE, &more]).stdout;
    assert!(
        grown.contains("Service sidecar-worker-1: added, like Service sidecar-worker-0\n"),
        "{grown}"
    );
    assert!(grown.ends_with("2 changed, 2 added, 0 removed.\n"), "{grown}");
    let shrunk = run(&["diff", &more, CASE]).stdout;
    assert!(shrunk.contains("Pod sidecar-worker-1: removed\n"), "{shrunk}");
    let all = run(&["diff", CASE, "/dev/null"]);
    assert!(
        all.stdout.ends_with("0 changed, 0 added, 4 removed.\n"),
        "{}",
        all.stdout
    );
}

#[test]
fn the_operators_settings_are_those_of_both_sides() {
    let two = changed("diff-gang", "    Worker:\n", "    Worker:\n      replicas: 2\n");
    let grown = run(&["diff", CASE, &two, "--gang-scheduler-name", "volcano"]).stdout;
    assert!(grown.contains("PodGroup sidecar: changed\n"), "{grown}");
    assert!(grown.contains("+  minMember: "), "{grown}");
}

#[test]
fn a_failed_comparison_exits_with_2() {
    for (old, new) in [
        (CASE, "no/such.yaml"),
        (CASE, "operator/tests/bad/no-worker.yaml"),
        (CASE, "HEAD:no/such.yaml"),
        ("no-such-revision:jobs", CASE),
    ] {
        let run = run(&["diff", old, new]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{old} {new}");
        assert!(!run.stderr.is_empty());
    }
    assert_eq!(run(&["diff", CASE]).code, Some(2));
}

/// Runs `diff` with a job on both sides, on the new side with `policy` as its run policy. Returns the differences of
/// values and rules.
fn rules_with(policy: &str) -> Vec<String> {
    let new = changed(
        "diff-rules",
        "  jobMode:",
        &format!("  runPolicy: {policy}\n  jobMode:"),
    );
    let run = run(&["diff", CASE, &new]);
    assert!(run.stderr.is_empty(), "{}", run.stderr);
    let rules: Vec<_> = run
        .stdout
        .lines()
        .filter(|line| line.contains(" → "))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        run.code,
        Some(i32::from(!rules.is_empty())),
        "{policy}: {}",
        run.stdout
    );
    rules
}

#[test]
fn changed_rules_are_differences_though_no_object_changes() {
    assert_eq!(
        rules_with("{cleanPodPolicy: Running, suspend: false}"),
        [""; 0],
        "these are the defaults"
    );
    for (policy, expected) in [
        ("{backoffLimit: 3}", "  backoffLimit: unset → 3"),
        (
            "{activeDeadlineSeconds: 60}",
            "  Deadline: unset → the job fails if it still runs 60 s after its start.",
        ),
        ("{cleanPodPolicy: All}", "  cleanPodPolicy: Running → All"),
        (
            "{ttlSecondsAfterFinished: 9}",
            "  ttlSecondsAfterFinished: unset → 9",
        ),
    ] {
        let rules = rules_with(policy);
        assert!(rules.iter().any(|rule| rule == expected), "{policy}: {rules:?}");
    }
    let suspended = changed(
        "diff-suspended",
        "  jobMode:",
        "  runPolicy: {suspend: true}\n  jobMode:",
    );
    let run_of = |old: &str, new: &str| run(&["diff", old, new, "--output", "markdown"]).stdout;
    let resumed = run_of(&suspended, CASE);
    assert!(resumed.contains("| suspend `true` → `false` |"), "{resumed}");
    let policy = changed("diff-policy", "restartPolicy: Never", "restartPolicy: ExitCode");
    let by_code = run_of(CASE, &policy);
    assert!(
        by_code.contains("worker.restartPolicy `Never` → `ExitCode`"),
        "{by_code}"
    );
    assert!(by_code.contains("restarts without limit |"), "{by_code}");
}

#[test]
fn a_comment_has_a_row_and_a_section_for_each_job() {
    let jobs = empty_directory("diff-comment-jobs");
    let files = ["old.yaml", "new.yaml"].map(|name| jobs.join(name));
    let job = |replicas: u32, rate: &str, more: &str| {
        format!(
            "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {{name: resnet, namespace: ml}}\nspec:\n  {more}\n  tfReplicaSpecs:\n    \
             Worker: {{replicas: {replicas}, template: {{spec: {{containers: [{{name: tensorflow, image: x, env: [{{name: LR, value: \
             \"{rate}\"}}], resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}}}}}\n"
        )
    };
    fs::write(
        &files[0],
        job(200, "0.1", "runPolicy: {backoffLimit: 3}") + "---\n" + &case(),
    )
    .unwrap();
    fs::write(&files[1], job(300, "0.05", "runPolicy: {backoffLimit: 1}")).unwrap();
    let [old, new] = files.each_ref().map(|file| file.to_str().unwrap());
    let run = run(&["diff", old, new, "--output", "markdown"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    assert!(run.stdout.len() < 10_000, "{} bytes", run.stdout.len());
    insta::assert_snapshot!(run.stdout);
}

/// GitHub refuses comments of more than 65,536 characters.
#[test]
fn a_comment_on_a_thousand_jobs_fits() {
    let directory = empty_directory("diff-thousand");
    let files = ["old.yaml", "new.yaml"].map(|name| directory.join(name));
    for (file, image) in files.iter().zip(["one", "two"]) {
        let job = |n| {
            format!(
                "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {{name: a{n}}}\nspec: {{jaxReplicaSpecs: {{Worker: {{template: \
                 {{spec: {{containers: [{{name: jax, image: {image}}}]}}}}}}}}}}\n"
            )
        };
        fs::write(file, (0..1_000).map(job).collect::<Vec<_>>().join("---\n")).unwrap();
    }
    let [old, new] = files.each_ref().map(|file| file.to_str().unwrap());
    let comment = run(&["diff", old, new, "--output", "markdown"]).stdout;
    assert!(comment.chars().count() < 65_536, "{}", comment.chars().count());
    assert!(
        comment.contains("| JAXJob a500 | worker.image `one` → `two` |\n"),
        "{comment}"
    );
    let end = "_A comment has space for 1000 of these 1000 jobs, and for the details of ";
    assert!(comment.lines().last().unwrap().starts_with(end), "{comment}");
}

#[test]
fn the_old_side_may_be_missing_or_invalid() {
    let repository = empty_directory("diff-first");
    git(&repository, &["init", "--quiet"]);
    fs::write(repository.join("README.md"), "no job").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "--message", "Nothing"]);
    fs::create_dir(repository.join("jobs")).unwrap();
    fs::write(repository.join("jobs/job.yaml"), case()).unwrap();
    for old in ["HEAD:jobs", "HEAD:jobs/job.yaml", "elsewhere/job.yaml"] {
        let first = run_in(&repository, &["diff", old, "jobs"], b"");
        assert_eq!(first.code, Some(1), "{old}: {}", first.stderr);
        assert_eq!(
            first.stderr,
            format!("note: {old} does not exist; the old side is empty\n")
        );
        assert!(
            first.stdout.starts_with("MXJob sidecar: added (2 pods)\n"),
            "{}",
            first.stdout
        );
    }
    fs::write(
        repository.join("bad.yaml"),
        case().replace("Worker:", "Wroker:") + "---\nnot: [",
    )
    .unwrap();
    let mended = run_in(&repository, &["diff", "bad.yaml", "jobs"], b"");
    assert_eq!(mended.code, Some(1), "{}", mended.stderr);
    assert!(
        mended.stdout.starts_with("MXJob sidecar: added (2 pods)\n"),
        "{}",
        mended.stdout
    );
    for line in mended.stderr.lines() {
        assert!(line.contains(": note: "), "{line}");
    }
    assert!(
        mended
            .stderr
            .contains("left out of the old side: MXJob has no role Wroker"),
        "{}",
        mended.stderr
    );
}

#[test]
fn a_path_of_a_revision_is_read_from_each_folder_and_never_guessed_empty() {
    let repository = empty_directory("diff-revision");
    git(&repository, &["init", "--quiet"]);
    fs::create_dir_all(repository.join("jobs/deep")).unwrap();
    fs::create_dir_all(repository.join("other")).unwrap();
    fs::write(repository.join("jobs/job.yaml"), case()).unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "--message", "A job"]);
    let changed = case().replace("tensorboard:2", "tensorboard:3");
    fs::write(repository.join("jobs/job.yaml"), changed).unwrap();
    let diff =
        |folder: &str, sides: [&str; 2]| run_in(&repository.join(folder), &["diff", sides[0], sides[1]], b"");
    for (folder, old, new) in [
        (".", "HEAD:.", "."),
        (".", "HEAD:./jobs", "jobs"),
        (".", "HEAD:jobs/../jobs/.", "jobs"),
        ("jobs", "HEAD:.", "."),
        ("jobs", "HEAD:./job.yaml", "job.yaml"),
        ("jobs", "HEAD:..", ".."),
        ("jobs", "HEAD:../jobs", "."),
        ("jobs/deep", "HEAD:../..", "../.."),
        ("other", "HEAD:../jobs/job.yaml", "../jobs"),
    ] {
        let run = diff(folder, [old, new]);
        assert_eq!((run.code, &*run.stderr), (Some(1), ""), "{folder} {old} {new}");
        assert!(
            run.stdout.starts_with("MXJob sidecar: changed"),
            "{old}: {}",
            run.stdout
        );
    }
    for (folder, old, new, error) in [
        (
            ".",
            "HEAD",
            ".",
            "HEAD: no such file, but a git revision; write HEAD:PATH, or HEAD:. for this directory",
        ),
        (".", "HEAD:.", "HEAD", "HEAD: no such file, but a git revision"),
        (".", "HEAD:..", ".", "HEAD:..: the path leaves the repository"),
        (
            ".",
            "HEAD:jbos",
            "jobs",
            "HEAD:jbos: HEAD has no jbos, nor has the working tree",
        ),
        (
            "jobs",
            "HEAD:job.yaml",
            "job.yaml",
            "HEAD has jobs/job.yaml, but not job.yaml, at the root; write HEAD:./job.yaml",
        ),
        (
            ".",
            "nosuch:jobs",
            "jobs",
            "nosuch:jobs: no such file, and none in git: fatal: ",
        ),
    ] {
        let run = diff(folder, [old, new]);
        assert_eq!((run.code, &*run.stdout), (Some(2), ""), "{folder} {old} {new}");
        assert!(run.stderr.contains(error), "{old}: {}", run.stderr);
    }
    fs::write(repository.join("other/new.yaml"), case()).unwrap();
    for (folder, old, new) in [(".", "HEAD:other", "other"), ("other", "HEAD:.", ".")] {
        let run = diff(folder, [old, new]);
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert_eq!(
            run.stderr,
            format!("note: {old} does not exist; the old side is empty\n")
        );
    }
}

/// A comment on a pull request has no standard error.
#[test]
fn notes_about_the_old_side_are_in_the_markdown() {
    let repository = empty_directory("diff-notes");
    fs::write(repository.join("old.yaml"), case().replace("Worker:", "Wroker:")).unwrap();
    fs::write(repository.join("new.yaml"), case()).unwrap();
    for (old, note) in [
        ("old.yaml", "- old.yaml:"),
        ("gone.yaml", "- gone.yaml does not exist; the old side is empty\n"),
    ] {
        let run = run_in(
            &repository,
            &["diff", old, "new.yaml", "--output", "markdown"],
            b"",
        );
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        let start = format!("### Training jobs\n\nNotes about the old side:\n\n{note}");
        assert!(run.stdout.starts_with(&start), "{}", run.stdout);
    }
}

#[test]
fn a_revision_that_a_shallow_clone_lacks_gets_its_remedy() {
    let (origin, clone) = (empty_directory("diff-origin"), empty_directory("diff-shallow"));
    git(&origin, &["init", "--quiet"]);
    for n in ["1", "2"] {
        fs::write(origin.join("job.yaml"), format!("{}# {n}\n", case())).unwrap();
        git(&origin, &["add", "."]);
        git(&origin, &["commit", "--quiet", "--message", n]);
    }
    let url = format!("file://{}", origin.display());
    git(&clone, &["clone", "--quiet", "--depth=1", &url, "."]);
    let run = run_in(&clone, &["diff", "HEAD~1:.", "."], b"");
    assert_eq!(run.code, Some(2));
    let remedy = "HEAD~1 is not in this shallow clone; fetch it with: git fetch --unshallow (";
    assert!(run.stderr.contains(remedy), "{}", run.stderr);
    git(&clone, &["fetch", "--quiet", "--unshallow"]);
    let run = run_in(&clone, &["diff", "HEAD~1:.", "."], b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
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
