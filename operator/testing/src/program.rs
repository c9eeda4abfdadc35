//! Runs the built program from the repository's root, so that messages name files as for users.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use training_job_testbed::cluster::repository;

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    repository()
}

/// Returns the program under test: that of the environment variable `OPERATOR`, such as the one that is shipped, or the
/// one that was built with the profile of this one.
pub fn path() -> PathBuf {
    let named = std::env::var_os("OPERATOR").map(|path| root().join(path));
    named.unwrap_or_else(|| profile_directory().join("training-operator"))
}

/// Returns the folder for the files of tests, which is in the target directory.
pub fn temporary() -> PathBuf {
    profile_directory().with_file_name("tmp")
}

/// Returns the folder of the programs of this profile. Cargo puts test programs into `deps` below it.
fn profile_directory() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let directory = program.parent().unwrap();
    let is_test = directory.ends_with("deps");
    if is_test {
        directory.parent().unwrap()
    } else {
        directory
    }
    .to_owned()
}

/// Creates an empty directory for the test of this name.
pub fn empty_directory(name: &str) -> PathBuf {
    let directory = temporary().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs the program in the root of the repository.
pub fn run(arguments: &[&str]) -> Run {
    run_with_input(arguments, b"")
}

/// Runs the program with this standard input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Run {
    run_in(&root(), arguments, input)
}

/// Runs the program in a directory.
pub fn run_in(directory: &Path, arguments: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(path())
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
