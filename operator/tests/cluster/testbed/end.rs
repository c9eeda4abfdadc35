//! No process or file remains, however a test program ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::child;

/// Returns the processes whose command line or environment contains a directory.
fn users_of(directory: &Path) -> Vec<String> {
    let needle = directory.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let process = entry.unwrap().path();
        let names = |file| {
            let bytes = fs::read(process.join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (command, environment) = (names("cmdline"), names("environ"));
        if command.contains(needle) || environment.contains(needle) {
            found.push(command);
        }
    }
    found
}

/// Starts a child and waits until its control plane runs.
fn start(role: &str) -> (Child, PathBuf) {
    let mut child = child::command(role)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map(Result::unwrap);
    let ready = lines.find_map(|line| line.strip_prefix("ready ").map(PathBuf::from));
    // The rest of the output is discarded. It must be read all the same, or the child could block.
    std::thread::spawn(move || lines.for_each(drop));
    (child, ready.unwrap())
}

/// There is no event for the end of processes that are not children, so it is polled.
#[track_caller]
fn expect_nothing_left(directory: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while directory.exists() || !users_of(directory).is_empty() {
        assert!(
            Instant::now() < deadline,
            "{directory:?} is used by {:?}",
            users_of(directory)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_of_a_killed_test_program() {
    let (mut child, directory) = start("stay");
    let before = users_of(&directory);
    for name in [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "janitor",
        "sleep 1000",
    ] {
        assert!(
            before.iter().any(|command| command.contains(name)),
            "no {name}: {before:?}"
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
    expect_nothing_left(&directory);
}

#[test]
fn nothing_is_left_of_a_test_that_fails() {
    let (mut child, directory) = start("panic");
    assert_eq!(child.wait().unwrap().code(), Some(101));
    expect_nothing_left(&directory);
}

#[test]
fn nothing_is_left_of_a_shared_control_plane() {
    let (mut child, directory) = start("end");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    expect_nothing_left(&directory);
}
