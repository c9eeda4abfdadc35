//! The program `training-review` on jobs of this repository.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;
use std::process::{Command, Output};

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// Runs a command line in the root of the repository.
fn run(line: &str) -> (Output, String) {
    let mut words = line.split(' ').skip_while(|word| *word == "training-review");
    let mut program = Command::new(env!("CARGO_BIN_EXE_training-review"));
    let output = program.args(&mut words).current_dir(root()).output().unwrap();
    let text = [&*output.stdout, &*output.stderr].concat();
    (output, String::from_utf8(text).unwrap())
}

#[test]
fn commands_review_jobs_without_a_cluster() {
    let (_, help) = run("--help");
    for command in [
        "new", "render", "validate", "snapshot", "diff", "explain", "convert",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let (output, help) = run(&format!("{command} --help"));
        assert!(output.status.success() && !help.contains("--cluster"), "{help}");
    }
    let (output, text) = run("diff --cluster examples/mxnet/train.yaml");
    assert_eq!(output.status.code(), Some(2), "{text}");
}

#[test]
fn examples_are_reviewed() {
    for line in [
        "validate examples/mxnet",
        "render examples/mxnet/train.yaml --summary",
        "explain examples/mxnet/train.yaml",
        "diff examples/mxnet/train.yaml examples/mxnet/train.yaml",
    ] {
        let (output, text) = run(line);
        assert!(output.status.success(), "{line}: {text}");
    }
}

/// The command that an error prints works.
#[test]
fn the_printed_command_converts_a_former_version() {
    let (output, text) = run("validate examples/legacy/mxjob-v1alpha1.yaml");
    assert_eq!(output.status.code(), Some(1), "{text}");
    let (_, command) = text.split_once("convert it with: ").unwrap();
    let command = command.lines().next().unwrap();
    assert!(command.starts_with("training-review convert "), "{command}");
    let (output, text) = run(command);
    assert!(
        output.status.success() && text.contains("apiVersion: kubeflow.org/v1\n"),
        "{text}"
    );
}
