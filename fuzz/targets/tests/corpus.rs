//! Runs the targets on the committed corpora, without a fuzzer, so that earlier findings stay fixed.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;

use training_job_fuzz_targets::{job, status, watch};

/// The maximum size of all corpora in bytes. They stay in the repository forever.
const MAX_CORPUS_BYTES: u64 = 300_000;

fn play(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() > 9, "{}: the corpus is missing", folder.display());
    for file in files {
        let bytes = fs::read(&file).unwrap();
        if std::panic::catch_unwind(|| check(&bytes)).is_err() {
            panic!("{}: see above", file.display());
        }
    }
}

#[test]
fn manifests() {
    play("job", job::check);
}

#[test]
fn statuses() {
    play("status", status::check);
}

#[test]
fn watches() {
    play("watch", watch::check);
}

#[test]
fn the_corpora_are_small() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let folders = fs::read_dir(corpus).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap());
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(
        bytes <= MAX_CORPUS_BYTES,
        "{bytes} bytes; make fuzz-corpus makes it smaller"
    );
}
