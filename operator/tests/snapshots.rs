//! `snapshots/` holds what every example and every case gets: what a reviewer reads.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use std::path::Path;

use program::{root, run};

/// Directories with jobs, and where the snapshots of their files are; `make snapshots` has the same.
const CORPUS: [(&str, &str); 4] = [
    ("examples/mxnet", "snapshots/mxnet/examples"),
    ("operator/tests/cases", "snapshots/mxnet/cases"),
    ("examples/xgboost", "snapshots/xgboost/examples"),
    ("operator/tests/tensorflow", "snapshots/tensorflow/cases"),
];

#[test]
fn snapshots_are_what_the_jobs_get() {
    for (jobs, snapshots) in CORPUS {
        let run = run(&["snapshot", jobs, "--dir", snapshots, "--check"]);
        assert_eq!(
            run.code,
            Some(0),
            "{}{}\nIf that is meant, run: make snapshots",
            run.stdout,
            run.stderr
        );
    }
}

#[test]
fn every_snapshot_belongs_to_the_corpus() {
    fn visit(directory: &Path) {
        for entry in std::fs::read_dir(root().join(directory)).unwrap() {
            let path = directory.join(entry.unwrap().file_name());
            if CORPUS.iter().any(|(_, snapshots)| path == Path::new(snapshots)) {
                continue;
            }
            assert!(
                root().join(&path).is_dir(),
                "{} belongs to no job",
                path.display()
            );
            visit(&path);
        }
    }
    visit(Path::new("snapshots"));
}

#[test]
fn make_writes_the_same_corpus() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    for (jobs, snapshots) in CORPUS {
        assert!(
            makefile.contains(&format!("snapshot {jobs} --dir {snapshots}\n")),
            "{jobs}"
        );
    }
}
