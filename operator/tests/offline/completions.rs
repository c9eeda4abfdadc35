//! Completion in bash itself, which is on every machine that builds this repository. `make test-shells` does the same in
//! zsh and fish.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use training_operator_testing::program::{empty_directory, run};

/// Returns the completions of the last word of a line in bash. An empty list lets bash complete files.
fn bash(line: &str) -> Vec<String> {
    let script = run(&["completions", "bash"]).stdout;
    let ask = r#"
        cd "$1"; shift
        # bash has it only while it completes.
        compopt() { :; }
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        entry=$(complete -p training-operator); function=${entry##*-F }; function=${function%% *}
        "$function" training-operator "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
        case $entry in *-o\ default*) ;; *) echo "files are not the default" ;; esac
    "#;
    let words = line.split(' ');
    let output = Command::new("bash")
        .args(["--norc", "-c", &format!("{script}{ask}"), "bash"])
        .arg(&*FOLDER)
        .args(words)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.lines().filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// A directory with a file and a folder.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = empty_directory("completions");
    fs::create_dir(folder.join("folder")).unwrap();
    fs::write(folder.join("file.yaml"), "").unwrap();
    folder
});

#[test]
fn bash_completes_at_every_level() {
    for (line, words) in [
        ("training-operator lo", &["local"][..]),
        ("training-operator local ", &["run", "cluster", "node"]),
        ("training-operator local r", &["run"]),
        ("training-operator validate --out", &["--output"]),
        ("training-operator local run --ven", &["--venv"]),
        ("training-operator validate --output s", &["sarif"]),
        ("training-operator crd --kind MPI", &["MPIJob"]),
        ("training-operator run --enable-scheme Py", &["PyTorchJob"]),
        ("training-operator run --gang-scheduler-name v", &["volcano"]),
        (
            "training-operator render --gang-scheduler-name sch",
            &["scheduler-plugins-scheduler"],
        ),
        ("training-operator completions f", &["fish"]),
    ] {
        let completed = bash(line);
        for word in words {
            assert!(
                completed.iter().any(|other| other == word),
                "{line}: {completed:?}"
            );
        }
    }
    assert_eq!(bash("training-operator local run --venv fol"), ["folder"]);
    assert!(
        bash("training-operator local run --venv fi").is_empty(),
        "a directory is expected"
    );
}

/// bash completes the files if a script has no words.
#[test]
fn bash_completes_files_where_a_command_takes_them() {
    for line in [
        "training-operator validate fi",
        "training-operator local run ",
        "training-operator diff fi",
    ] {
        assert!(bash(line).is_empty(), "{line}: {:?}", bash(line));
    }
}
