//! The outputs in docs/authors/add-a-framework.md are those of the program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn operator(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm-operator"));
    command.current_dir(ROOT).args(arguments).output().unwrap()
}

/// Returns the outputs of the page.
fn documented() -> Vec<String> {
    let page = fs::read_to_string(Path::new(ROOT).join("../../docs/authors/add-a-framework.md")).unwrap();
    let blocks = page.split("```text\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_job_runs_on_this_machine() {
    let output = operator(&["local", "run", "jobs/primes.yaml"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for line in documented()[0].lines() {
        assert!(text.lines().any(|real| real == line), "no {line:?} in\n{text}");
    }
}

#[test]
fn bad_input_is_rejected() {
    let output = operator(&["local", "run", "jobs/headless.yaml"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), documented()[1]);
}
