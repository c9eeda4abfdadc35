//! Everything in `operator/tests/bad` is rejected with exit code 2, without standard output, and with messages that
//! name file, position, field and remedy. One snapshot contains all messages.

use std::fs;

use training_operator_testing::program::{root, run, run_with_input};

#[test]
fn every_bad_file_is_refused_with_a_remedy() {
    let mut files: Vec<_> = fs::read_dir(root().join("operator/tests/bad"))
        .unwrap()
        .map(|e| format!("operator/tests/bad/{}", e.unwrap().file_name().to_str().unwrap()))
        .collect();
    files.sort();
    let arguments: Vec<_> = std::iter::once("render")
        .chain(files.iter().map(String::as_str))
        .collect();
    let run = run(&arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    for file in &files {
        assert!(run.stderr.contains(file), "{file} is not refused");
    }
    for line in run.stderr.lines() {
        assert!(line.matches("; ").count() <= 1, "it has two remedies: {line}");
    }
    insta::assert_snapshot!(run.stderr);
}

#[test]
fn missing_files_are_reported() {
    let gone = run(&["render", "no/such/file.yaml"]);
    assert_eq!(gone.code, Some(2));
    assert_eq!(gone.stderr, "no/such/file.yaml: no such file\n");

    let empty = run(&["render", "src/plan"]);
    assert_eq!(empty.code, Some(2));
    assert_eq!(
        empty.stderr,
        "src/plan: contains no *.yaml, *.yml or *.json file\n"
    );

    let stdin = run_with_input(&["render", "-"], b"a: 1\na: 2\n");
    assert_eq!(stdin.code, Some(2));
    assert_eq!(
        stdin.stderr,
        "<stdin>:2:1: duplicate key a, first in line 1; keep one\n"
    );
}

#[test]
fn one_bad_file_keeps_all_from_being_printed() {
    let run = run(&[
        "render",
        "operator/tests/cases/single-worker.yaml",
        "operator/tests/bad/negative-replicas.yaml",
        "operator/tests/bad/no-worker.yaml",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert_eq!(run.stderr.lines().count(), 2);
}

#[test]
fn usage_errors_end_with_2_and_suggest() {
    let typo = run(&["rendr"]);
    assert_eq!(typo.code, Some(2));
    assert!(typo.stderr.contains("'render'"), "{}", typo.stderr);
    for arguments in [&["render"][..], &[], &["render", "x", "--output", "toml"]] {
        assert_eq!(run(arguments).code, Some(2), "{arguments:?}");
    }
    let file = run(&["run", "job.yaml"]);
    assert_eq!(file.code, Some(2));
    let remedy = "to run a job on this machine: training-operator local run job.yaml\n";
    assert!(file.stderr.ends_with(remedy), "{}", file.stderr);
}

#[test]
fn a_file_cannot_write_to_the_terminal() {
    let job = b"apiVersion: kubeflow.org/v1\nkind: MXJob\n\"\\e[31m\": 1\n";
    let run = run_with_input(&["render", "-"], job);
    assert_eq!(run.code, Some(2));
    assert!(!run.stderr.contains('\u{1b}'), "{:?}", run.stderr);
}
