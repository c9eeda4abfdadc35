//! Fuzzes the program: the input is a manifest.

use std::collections::BTreeSet;

use serde_json::Value;
use training_job::{Settings, TrainingJob, validate};
use training_job_jax::JAXJob;
use training_job_mlkube::{MxJob, TfJob};
use training_job_mpi::MPIJob;
use training_job_mxnet::MXJob;
use training_job_paddle::PaddleJob;
use training_job_pytorch::PyTorchJob;
use training_job_tensorflow::TFJob;
use training_job_testbed::PlanHarness;
use training_job_xgboost::XGBoostJob;
use training_review::fuzzing::{self, Job, Program};

/// The maximum number of replicas to render. Larger jobs are only validated, because each pod may name all others.
const MAX_REPLICAS: u32 = 24;

thread_local! {
    static PROGRAM: Program = fuzzing::program();
}

/// Reads, validates, renders, explains and plans the jobs of a manifest.
///
/// # Panics
/// * The program panics.
/// * A second review of the same bytes gives different findings.
/// * A finding's line and column are not in the file, or a finding could control a terminal.
/// * A job that validates cannot be rendered, explained, or planned to its end.
/// * A rendered object changes when it is read back.
pub fn check(bytes: &[u8]) {
    let review = PROGRAM.with(|program| program.review(bytes.to_vec()));
    let again = PROGRAM.with(|program| program.review(bytes.to_vec()));
    assert_eq!(review.findings, again.findings);
    assert_eq!(review.reports, again.reports);
    for (at, line) in &review.findings {
        if let Some((row, column)) = *at {
            assert_in_file(bytes, row, column, line);
        }
        let escapes = line.matches('\u{1b}').count();
        assert_eq!(escapes, line.matches("\u{1b}[").count(), "{line:?}");
        assert!(!line.contains(['\n', '\r', '\u{9b}']), "{line:?}");
    }
    for job in &review.jobs {
        match job.object()["kind"].as_str() {
            Some("MXJob") => check_job::<MXJob>(job),
            Some("TFJob") => check_job::<TFJob>(job),
            Some("XGBoostJob") => check_job::<XGBoostJob>(job),
            Some("PyTorchJob") => check_job::<PyTorchJob>(job),
            Some("JAXJob") => check_job::<JAXJob>(job),
            Some("PaddleJob") => check_job::<PaddleJob>(job),
            Some("MPIJob") => check_job::<MPIJob>(job),
            Some("MxJob") => check_job::<MxJob>(job),
            Some("TfJob") => check_job::<TfJob>(job),
            other => panic!("the program takes {other:?} for a job"),
        }
    }
}

/// Asserts that a file has this line and column, counted like in editors: from 1, with one more line than there are
/// line breaks, and one more column than there are characters.
fn assert_in_file(bytes: &[u8], row: usize, column: usize, line: &str) {
    let text = std::str::from_utf8(bytes).expect("only text has lines");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let found = row.checked_sub(1).and_then(|n| normal.split('\n').nth(n));
    let found = found.unwrap_or_else(|| panic!("there is no line {row}: {line}"));
    let columns = found.chars().count() + 1;
    assert!(
        (1..=columns).contains(&column),
        "line {row} has no column {column}: {line}"
    );
}

fn check_job<J: TrainingJob>(job: &Job) {
    let mut object = job.object().clone();
    let typed: J = serde_json::from_value(object.clone()).expect("a valid job deserializes");
    let valid = validate(&typed, &Settings::default()).expect("a job without findings is valid");
    if valid.topology.total() > MAX_REPLICAS {
        return;
    }
    let rendered = render(job);
    assert_eq!(rendered, render(job), "a job is rendered in one way");
    let again: J = serde_json::from_value(serde_json::to_value(&typed).unwrap()).unwrap();
    let again = validate(&again, &Settings::default()).expect("a job that is stored stays valid");
    assert_eq!(
        format!("{:?}", training_job::render::all(&again)),
        format!("{:?}", training_job::render::all(&valid)),
        "a job that is stored is rendered as before"
    );
    job.explain().expect("a valid job can be explained");

    object["metadata"]["name"] = "job".into();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    check_plans::<J>(&object);
}

fn render(job: &Job) -> Vec<Value> {
    let objects = job.render().expect("a valid job can be rendered");
    let text = fuzzing::print(&objects).expect("objects can be printed");
    let read = fuzzing::read(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    assert_eq!(read, objects, "{text}");
    let summary = PROGRAM.with(|program| program.summary(&objects));
    summary.expect("objects can be counted up");
    let mut names = BTreeSet::new();
    for object in &objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        assert!((1..=63).contains(&name.len()), "{name:?} is no host name");
        assert!(
            names.insert((object["kind"].to_string(), name)),
            "two objects are {name}"
        );
    }
    objects
}

/// Asserts that a job settles after any end of its first pods, and that the same state always has the same plan.
fn check_plans<J: TrainingJob>(object: &Value) {
    let mut harness = PlanHarness::<J>::from_yaml(&object.to_string());
    harness.reconcile();
    assert_one_plan(&harness);
    harness.all_running();
    assert_one_plan(&harness);
    let mut replicas: Vec<String> = harness
        .pods
        .keys()
        .filter_map(|name| first_of_role(name))
        .collect();
    replicas.truncate(3);
    for replica in &replicas {
        for code in [0, 1, 137] {
            let mut harness = harness.clone();
            match code {
                0 => harness.pod(replica).succeeds(),
                code => harness.pod(replica).exits(code),
            }
            .reconcile();
            assert_one_plan(&harness);
            harness
                .finish_deletions()
                .reconcile()
                .after(100_000_000)
                .reconcile();
            assert_one_plan(&harness);
        }
    }
}

fn first_of_role(pod: &str) -> Option<String> {
    let replica = pod.strip_prefix("job-")?;
    replica.ends_with("-0").then(|| replica.to_owned())
}

fn assert_one_plan<J: TrainingJob>(harness: &PlanHarness<J>) {
    assert_eq!(format!("{:?}", harness.plan()), format!("{:?}", harness.plan()));
}
