//! `snapshots/` holds what `render` prints for every example and every case: what a reviewer reads.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use program::{root, run};

const UPDATE: &str = "UPDATE_SNAPSHOTS=1 cargo test -p training-operator --test snapshots";

/// Directories with jobs, and where the snapshots of their files are.
const CORPUS: [(&str, &str); 4] = [
    ("examples/mxnet", "snapshots/mxnet/examples"),
    ("operator/tests/cases", "snapshots/mxnet/cases"),
    ("examples/xgboost", "snapshots/xgboost/examples"),
    ("operator/tests/tensorflow", "snapshots/tensorflow/cases"),
];

#[test]
fn snapshots_are_what_render_prints() {
    let mut expected = BTreeMap::new();
    for (jobs, snapshots) in CORPUS {
        for job in files(&root().join(jobs)) {
            let name = job.strip_prefix(root().join(jobs)).unwrap().to_owned();
            let job = format!("{jobs}/{}", name.display());
            let run = run(&["render", &job]);
            assert_eq!(run.code, Some(0), "{job}: {}", run.stderr);
            let text = format!("# What {job} gets.\n{}", run.stdout);
            expected.insert(root().join(snapshots).join(&name), text);
        }
    }
    assert!(!expected.is_empty());
    let committed = files(&root().join("snapshots"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return update(&expected, &committed);
    }
    let mut wrong = Vec::new();
    for (file, text) in &expected {
        match fs::read_to_string(file) {
            Ok(committed) if committed == *text => {}
            Ok(committed) => wrong.push(format!(
                "{} is stale{}",
                file.display(),
                first_change(&committed, text)
            )),
            Err(_) => wrong.push(format!("{} is missing", file.display())),
        }
    }
    for file in committed {
        if !expected.contains_key(&file) {
            wrong.push(format!("{} belongs to no job", file.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nIf that is meant, run: {UPDATE}",
        wrong.join("\n")
    );
}

fn update(expected: &BTreeMap<PathBuf, String>, committed: &[PathBuf]) {
    for file in committed.iter().filter(|file| !expected.contains_key(*file)) {
        fs::remove_file(file).unwrap();
    }
    for (file, text) in expected {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

fn first_change(old: &str, new: &str) -> String {
    let same = old.lines().zip(new.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(end)").to_owned();
    format!(" from line {}:\n- {}\n+ {}", same + 1, line(old), line(new))
}

/// All manifests below a directory, which need not be there: scripts beside examples are no jobs.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|e| e == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}
