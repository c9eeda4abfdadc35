//! What the jobs of a folder get, compared with what was committed.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

use crate::job::{Settings, TrainingJob};
use crate::render::{self, text};
use crate::validate::validate;

use super::jobs::{self, files, stem};

/// Compares what every job in a folder gets with a snapshot of it, by [insta]: a reviewer then sees in a
/// pull request what a change of the framework does to the pods.
///
/// `base` is the folder from which the others are named: `env!("CARGO_MANIFEST_DIR")`. All YAML and JSON
/// files at and below `jobs` are read, and of them the objects of kind `J`. Below `snapshots` there is a
/// file `NAME.snap` for each: the job, then its services and pods, or why it is refused.
///
/// ```no_run
/// # fn is_a_test<MyJob: training_job::TrainingJob>() {
/// training_job::testing::snapshots::<MyJob>(env!("CARGO_MANIFEST_DIR"), "tests/jobs", "tests/snapshots");
/// # }
/// ```
///
/// New and changed snapshots are accepted by `cargo insta review`, or by running the test with
/// `INSTA_UPDATE=always`, which also deletes those that belong to no job.
///
/// # Panics
/// When a snapshot is missing or stale, or belongs to no job; when there is no job; when a file cannot be
/// read, or two jobs would have one snapshot.
///
/// [insta]: https://insta.rs
pub fn snapshots<J: TrainingJob>(base: impl AsRef<Path>, jobs: &str, snapshots: &str) {
    let base = base.as_ref();
    let directory = base.join(snapshots);
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for jobs::File { name, path, job } in jobs::read::<J>(&base.join(jobs), jobs) {
        let heading = format!("What {path} gets.");
        assert!(
            names.insert(name.clone()),
            "two jobs have the snapshot {name}; rename one"
        );
        let text = describe::<J>(&heading, job);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), text));
        // All that differ are to be seen, not the first alone.
        if catch_unwind(AssertUnwindSafe(compare)).is_err() {
            wrong.push(name);
        }
    }
    assert!(!names.is_empty(), "no job of kind {} is in {jobs}", J::kind(&()));
    assert!(
        wrong.is_empty(),
        "missing or stale in {snapshots}: {}; review them by `cargo insta review`, or accept all by INSTA_UPDATE=always",
        wrong.join(", ")
    );
    let accepts = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always" || update == "force");
    for file in files(&directory, &["snap"]) {
        let name = stem(&file, &directory);
        if names.contains(&name) {
            continue;
        }
        assert!(accepts, "{snapshots}/{name}.snap belongs to no job; delete it");
        fs::remove_file(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// What a job gets, or why it is refused.
fn describe<J: TrainingJob>(heading: &str, job: Value) -> String {
    let object = job.clone();
    let refused = |why: &str| {
        let whole = text::snapshot(heading, &object, &[]);
        let whole = whole.unwrap_or_else(|error| panic!("{heading} {error}"));
        let lines: Vec<String> = why.lines().map(|line| format!("# {line}\n")).collect();
        format!("{whole}---\n# Refused:\n{}", lines.concat())
    };
    let mut typed: J = match serde_json::from_value(job) {
        Ok(typed) => typed,
        Err(error) => return refused(&error.to_string()),
    };
    typed
        .meta_mut()
        .uid
        .get_or_insert_with(|| render::NO_UID.to_owned());
    let valid = match validate(&typed, &Settings::default()) {
        Ok(valid) => valid,
        Err(errors) => return refused(&errors.to_string()),
    };
    let objects = render::all(&valid).values();
    let objects = objects.unwrap_or_else(|error| panic!("{heading} {error}"));
    text::snapshot(heading, &object, &objects).unwrap_or_else(|error| panic!("{heading} {error}"))
}
