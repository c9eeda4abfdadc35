//! Programs that `tests/consumers/build.sh` has built.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use training_job_testbed::cluster::repository;
use training_operator_testing::recordings::life::Recording;

/// Runs a program on recordings and returns its result for each.
pub(crate) fn read<'a>(
    program: &str,
    arguments: &[&str],
    recordings: impl Iterator<Item = &'a Recording>,
) -> Vec<(&'a Recording, Value)> {
    let recordings: Vec<_> = recordings.collect();
    let files: Vec<_> = recordings.iter().map(|recording| recording.file()).collect();
    let mut command = start(program);
    command.args(arguments).args(&files);
    let readings = run(command, "");
    assert_eq!(readings.len(), recordings.len(), "{program}");
    recordings.into_iter().zip(readings).collect()
}

/// Runs a program with these lines of input and returns the lines of its output.
pub(crate) fn ask(program: &str, questions: &[Value]) -> Vec<Value> {
    let input: String = questions.iter().map(|question| format!("{question}\n")).collect();
    let readings = run(start(program), &input);
    assert_eq!(readings.len(), questions.len(), "{program}");
    readings
}

fn start(program: &str) -> Command {
    let path = repository().join("target/consumers").join(program);
    assert!(
        path.is_file(),
        "{path:?} is missing: tests/consumers/build.sh builds it"
    );
    let mut command = Command::new(path);
    command.current_dir(repository());
    command
}

fn run(mut command: Command, input: &str) -> Vec<Value> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // The program writes output while it reads input.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
