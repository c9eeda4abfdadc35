//! Sessions of a shell with the built program: the files `cases/NAME.t`.
//!
//! An indented line that begins with `$` is a command, and `>` continues it. Its output follows: the lines of standard
//! output, those of standard error after a `!`, and the exit code in brackets if it is not 0. Other lines are prose.
//! The commands of a file run in one bash, in a directory that has links to the jobs of the tests and the examples.
//! `$ROOT` is the repository, and `$VERSION` its version.
//! `UPDATE_SNAPSHOTS=1` writes the output into the files.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use training_operator_testing::program::{empty_directory, path, root};

const LINKS: [&str; 7] = [
    "docs",
    "examples",
    "operator/tests/accelerators",
    "operator/tests/bad",
    "operator/tests/cases",
    "operator/tests/convert",
    "operator/tests/warned",
];

/// Precedes the exit code of a command in the output of the shell.
const MARK: char = '\u{1}';

macro_rules! cases {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                expect(stringify!($name));
            }
        )*

        #[test]
        fn every_file_is_a_case() {
            let files = fs::read_dir(folder()).unwrap();
            let mut files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
            files.sort();
            assert_eq!(files, [$(concat!(stringify!($name), ".t")),*]);
        }
    };
}

cases! { action bad_input completions convert crd diff diff_revisions explain local_run manual new new_kind release render smoke_test snapshot validate }

fn folder() -> std::path::PathBuf {
    root().join("operator/tests/offline/cases")
}

/// Compares a file with the same file after its commands have run again.
fn expect(name: &str) {
    let file = folder().join(format!("{name}.t"));
    let before = fs::read_to_string(&file).unwrap();
    let after = run(name, &before);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(file, after).unwrap();
    } else if before != after {
        let new = empty_directory(&format!("case-{name}-new")).join(format!("{name}.t"));
        fs::write(&new, after).unwrap();
        let mut diff = Command::new("git");
        let diff = diff.args(["diff", "--no-index", "--no-color"]).args([file, new]);
        panic!("{}", String::from_utf8_lossy(&diff.output().unwrap().stdout));
    }
}

fn run(name: &str, text: &str) -> String {
    let commands = text.lines().filter_map(|line| {
        let first = line.strip_prefix("  $ ").map(|first| format!("{MARK}{first}"));
        first.or_else(|| line.strip_prefix("  > ").map(str::to_owned))
    });
    let commands = commands.collect::<Vec<_>>().join("\n");
    let mut script = r#"set -o pipefail; PATH="${ERRORS%/*}:$PATH""#.to_owned();
    for command in commands.split(MARK).skip(1) {
        script += &format!(
            "\n{{ {command}\n}} 2>$ERRORS; code=$?; sed 's/^/! /' $ERRORS; printf '{MARK}%s{MARK}' $code"
        );
    }
    let outside = empty_directory(&format!("case-{name}"));
    let directory = outside.join("files");
    fs::create_dir(&directory).unwrap();
    symlink(path(), outside.join("training-operator")).unwrap();
    for link in LINKS.map(|link| root().join(link)) {
        symlink(&link, directory.join(link.file_name().unwrap())).unwrap();
    }
    let output = Command::new("bash")
        .args(["--norc", "-c", &script])
        .current_dir(&directory)
        .env("LC_ALL", "C.UTF-8")
        .env("ROOT", root())
        .env("VERSION", env!("CARGO_PKG_VERSION"))
        .env("ERRORS", outside.join("errors"))
        // The repository may be around this directory.
        .env("GIT_CEILING_DIRECTORIES", &outside)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = String::from_utf8(output.stdout).unwrap();
    merge(text, output.split(MARK))
}

/// Returns the text with the output and the exit code of each command below it.
fn merge<'t>(text: &str, mut results: impl Iterator<Item = &'t str>) -> String {
    let mut merged = String::new();
    let mut lines = text.lines().peekable();
    let mut is_output = false;
    while let Some(line) = lines.next() {
        let is_command = line.starts_with("  $ ");
        if is_command || line.starts_with("  > ") {
            merged += &format!("{line}\n");
            if lines.peek().is_some_and(|next| next.starts_with("  > ")) {
                continue;
            }
            for line in results.next().unwrap_or("(the shell has ended)").lines() {
                merged += format!("  {line}").trim_end();
                merged.push('\n');
            }
            match results.next() {
                Some("0") | None => {}
                Some(code) => merged += &format!("  [{code}]\n"),
            }
            is_output = true;
        } else if !(line.starts_with("  ") || is_output && line.is_empty()) {
            let blank = if is_output { "\n" } else { "" };
            merged += &format!("{blank}{line}\n");
            is_output = false;
        }
    }
    merged
}
