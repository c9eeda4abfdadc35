//! The commands of README work, its job is valid, and its output matches the program's.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use training_operator_testing::program::root;
use training_operator_testing::venv::venv;

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// Returns the fenced blocks of README in this language.
fn blocks(language: &str) -> Vec<String> {
    let readme = readme();
    let fence = format!("```{language}\n");
    let blocks: Vec<String> = readme
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect();
    assert!(!blocks.is_empty(), "no {language} in README");
    blocks
}

fn program(arguments: &[&str]) -> Output {
    venv("mxnet");
    let mut command = Command::new(env!("CARGO_BIN_EXE_training-operator"));
    command.args(arguments).current_dir(root()).output().unwrap()
}

/// Masks every number and time, because they differ from run to run. A duration of ten seconds or more has no fraction.
fn masked(line: &str) -> String {
    let parts = line.split(|c: char| !c.is_ascii_digit());
    let mut masked = String::new();
    for (number, next) in parts.zip(
        line.chars()
            .filter(|c| !c.is_ascii_digit())
            .map(Some)
            .chain([None]),
    ) {
        masked.push_str(if number.is_empty() { "" } else { "0" });
        masked.extend(next);
    }
    let words = masked.split_whitespace().map(|word| {
        if word.starts_with("weights=") {
            "weights="
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ").replace("(0.0 s)", "(0 s)")
}

#[test]
fn its_commands_work() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let command = line.split('#').next().unwrap();
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            // CI runs these. A test that builds the project again would wait for itself.
            ["make", target] => {
                assert!(makefile.contains(&format!("\n{target}: ")), "no {line}");
                assert!(ci.contains(line), "CI does not run {line}");
            }
            ["training-operator", ref arguments @ ..] => {
                if let ["new-kind", _, directory, ..] = arguments {
                    let _ = fs::remove_dir_all(root().join(directory));
                }
                let output = program(arguments);
                // Exit code 1 means that there are differences.
                let differs = arguments[0] == "diff" && output.status.code() == Some(1);
                assert!(output.status.success() || differs, "{line}: {output:?}");
            }
            // The tests of the manifests apply these to a real API server.
            [
                "kubectl",
                "apply",
                "--server-side",
                "--force-conflicts",
                "-k",
                path,
            ] => {
                let overlay = path.rsplit('/').next().unwrap();
                assert!(root().join(path).is_dir(), "no {line}");
                let tested = include_str!("../cluster/install/overlays.rs");
                assert!(tested.contains(&format!("{overlay:?}")), "no test applies {line}");
            }
            // `operator/tests/helm` and `operator/tests/node` install it.
            ["helm", "install", _, chart, ..] => {
                assert!(root().join(chart).join("Chart.yaml").is_file(), "no {line}");
            }
            _ => panic!("README has a command that is not tested: {line}"),
        }
    }
}

#[test]
fn its_job_is_valid() {
    let job = &blocks("yaml")[0];
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme.yaml");
    fs::write(&file, job).unwrap();
    let output = program(&["render", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_readme_shows_the_real_output() {
    let output = program(&[
        "local",
        "run",
        "--venv",
        ".venv/mxnet",
        "examples/mxnet/train.yaml",
    ]);
    let real: Vec<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(masked)
        .collect();
    for line in blocks("text")[0].lines().filter(|line| *line != "…") {
        assert!(
            real.contains(&masked(line)),
            "{line:?} is not in\n{}",
            real.join("\n")
        );
    }
}
