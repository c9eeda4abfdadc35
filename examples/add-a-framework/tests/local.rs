//! Jobs as processes of this machine. story.rs tests the rest of their lives.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn operator(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm-operator"));
    command.current_dir(ROOT).args(arguments).output().unwrap()
}

/// Writes a changed copy of `primes.yaml` to a folder of its own.
fn change(name: &str, from: &str, to: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(Path::new(ROOT).join("jobs/farm.py"), folder.join("farm.py")).unwrap();
    let manifest = fs::read_to_string(Path::new(ROOT).join("jobs/primes.yaml")).unwrap();
    assert!(manifest.contains(from));
    let file = folder.join("job.yaml");
    fs::write(&file, manifest.replacen(from, to, 1)).unwrap();
    file
}

/// Runs a job. Returns its exit code and output.
fn run(file: &Path) -> (Option<i32>, String) {
    let output = operator(&["local", "run", file.to_str().unwrap()]);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn the_example_counts_primes() {
    let (code, text) = run(Path::new("jobs/primes.yaml"));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("head-0 | RESULT 17984 primes below 200000\n"),
        "{text}"
    );
}

/// A kind with required fields of its own has the hook `example`.
#[test]
fn a_command_runs_as_a_first_job() {
    let output = operator(&[
        "local",
        "run",
        "--kind",
        "FarmJob",
        "--",
        "sh",
        "-c",
        "echo I am $FARM_ROLE",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("head-0 | I am head\n"), "{text}");
}

#[test]
fn a_head_that_fails_fails_the_job() {
    let (code, text) = run(&change("failed", "[python3, farm.py]", "[sh, -c, exit 3]"));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("head-0 * Failed: exited with 3\n"), "{text}");
}

/// The head decides the job while workers still run. The workers are reported as stopped, not as failed.
#[test]
fn workers_that_outlive_a_successful_head_are_stopped() {
    let script = "if [ $FARM_ROLE = head ]; then while [ ! -e up ]; do sleep 0.1; done; else touch up; exec sleep 1000; fi";
    let command = format!("[sh, -c, '{script}']");
    let (code, text) = run(&change("outlived", "[python3, farm.py]", &command));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(" * stopped\n"), "{text}");
    assert!(!text.contains("exit code 143"), "{text}");
}

#[test]
fn ctrl_c_ends_all() {
    let file = change("endless", "[python3, farm.py]", "[sleep, '1000']");
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm-operator"));
    let run = command
        .args(["local", "run"])
        .arg(file)
        .stdout(Stdio::piped())
        .spawn();
    let mut run = run.unwrap();
    let lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let begun = lines.find(|line| line == "primes * Running: FarmJob primes is running.");
    assert!(begun.is_some());
    let interrupt = ["-INT", &run.id().to_string()];
    Command::new("kill").args(interrupt).status().unwrap();
    let rest: Vec<String> = lines.collect();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{rest:#?}");
    assert!(!rest.iter().any(|line| line.contains("Succeeded")), "{rest:#?}");
}

#[test]
fn bad_input_is_rejected_with_its_field() {
    let (code, text) = run(Path::new("jobs/headless.yaml"));
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.starts_with("jobs/headless.yaml:7:3: spec.replicaSpecs: must have a Head"),
        "{text}"
    );
}

#[test]
fn the_committed_definition_is_current() {
    let printed = String::from_utf8(operator(&["crd"]).stdout).unwrap();
    let file = Path::new(ROOT).join("crd.yaml");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&file, &printed).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == printed, "stale; run: UPDATE_SNAPSHOTS=1 cargo test");
}
