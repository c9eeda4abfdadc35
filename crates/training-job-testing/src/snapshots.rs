//! Compares the objects of the jobs in a folder with committed snapshots.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

use training_job::admission;
use training_job::job::{Kind, Settings, TrainingJob};
use training_job::render::{self, text};
use training_job::validate::validate_any;

use super::jobs::{self, files, stem};

/// Compares the objects of every job in a folder with a snapshot by [insta]. A reviewer of a pull request then sees
/// the effect of a change of the framework on the pods.
///
/// `base` is the folder to which the other paths are relative: `env!("CARGO_MANIFEST_DIR")`. The objects of kind `J`
/// in all YAML and JSON files at and below `jobs` are read. For each, a file `NAME.snap` below `snapshots` has the
/// job, followed by its services and pods, or by the errors for which it is rejected.
///
/// ```no_run
/// # fn is_a_test<MyJob: training_job::TrainingJob>() {
/// training_job_testing::snapshots::<MyJob>(env!("CARGO_MANIFEST_DIR"), "tests/jobs", "tests/snapshots");
/// # }
/// ```
///
/// To accept new and changed snapshots, run `cargo insta review`, or run the test with `INSTA_UPDATE=always`, which
/// also deletes snapshots without a job.
///
/// # Panics
/// If the declarations of the kind contradict each other; if a snapshot is missing or stale, or has no job; if there is no job; if a file cannot be read; if two jobs have
/// the same snapshot name.
///
/// [insta]: https://insta.rs
pub fn snapshots<J: TrainingJob>(base: impl AsRef<Path>, jobs: &str, snapshots: &str) {
    let kind = &Kind::of::<J>();
    admission::definition_of(kind).unwrap_or_else(|error| panic!("{error}"));
    let base = base.as_ref();
    let directory = base.join(snapshots);
    let mut names = BTreeSet::new();
    let mut wrong = Vec::new();
    for jobs::File { name, path, job } in jobs::read(kind, &base.join(jobs), jobs) {
        let heading = format!("Objects of {path}.");
        assert!(
            names.insert(name.clone()),
            "two jobs have the snapshot {name}; rename one"
        );
        let text = describe(kind, &heading, job);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(&directory);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), text));
        // Continues after a difference, so that all of them are reported.
        if catch_unwind(AssertUnwindSafe(compare)).is_err() {
            wrong.push(name);
        }
    }
    assert!(!names.is_empty(), "no job of kind {} is in {jobs}", kind.name());
    assert!(
        wrong.is_empty(),
        "missing or stale in {snapshots}: {}; review them with `cargo insta review`, or accept all with INSTA_UPDATE=always",
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

/// Returns the snapshot of a job: its objects, or the errors for which it is rejected.
fn describe(kind: &Kind, heading: &str, job: Value) -> String {
    let refused = |why: &str| {
        let whole = text::snapshot(heading, &job, &[]);
        let whole = whole.unwrap_or_else(|error| panic!("{heading} {error}"));
        let lines: Vec<String> = why.lines().map(|line| format!("# {line}\n")).collect();
        format!("{whole}---\n# Refused:\n{}", lines.concat())
    };
    let typed = match render::decode(kind, &job) {
        Ok(typed) => typed,
        Err(error) => return refused(&error.to_string()),
    };
    let valid = match validate_any(kind, &*typed, &Settings::default()) {
        Ok(valid) => valid,
        Err(errors) => return refused(&errors.to_string()),
    };
    let objects = render::all(&valid).values();
    let objects = objects.unwrap_or_else(|error| panic!("{heading} {error}"));
    text::snapshot(heading, &job, &objects).unwrap_or_else(|error| panic!("{heading} {error}"))
}
