//! The program `training-review` on jobs of this repository.

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
fn it_has_the_commands_that_review_jobs_and_none_that_needs_a_cluster() {
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
fn it_reviews_the_examples() {
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
fn a_former_version_is_converted_as_the_error_says() {
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
