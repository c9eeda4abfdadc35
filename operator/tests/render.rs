//! `training-operator render`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod program;

use serde_json::Value;

use program::{root, run, run_with_input};

const SINGLE: &str = "operator/tests/cases/single-worker.yaml";
const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";

fn case(name: &str) -> String {
    std::fs::read_to_string(root().join("operator/tests/cases").join(name)).unwrap()
}

#[test]
fn a_job_becomes_its_service_and_its_pod() {
    let run = run(&["render", SINGLE]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let objects: Vec<Value> = serde_saphyr::from_multiple(&run.stdout).unwrap();
    let titles: Vec<_> = objects
        .iter()
        .map(|o| {
            (
                o["kind"].as_str().unwrap(),
                o["metadata"]["name"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        titles,
        [("Service", "single-worker-0"), ("Pod", "single-worker-0")]
    );
    assert!(run.stdout.starts_with("---\n# Service single-worker-0\n"));
}

#[test]
fn standard_input_reads_as_a_file_does() {
    let from_file = run(&["render", SINGLE]);
    let from_stdin = run_with_input(&["render", "-"], case("single-worker.yaml").as_bytes());
    assert_eq!(from_stdin.code, Some(0));
    assert_eq!(from_stdin.stdout, from_file.stdout);
}

#[test]
fn a_directory_is_read_in_order_of_names() {
    let whole = run(&["render", "operator/tests/cases"]);
    assert_eq!((whole.code, whole.stderr.as_str()), (Some(0), ""));
    let mut files: Vec<_> = std::fs::read_dir(root().join("operator/tests/cases"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let arguments: Vec<_> = std::iter::once("render")
        .chain(files.iter().map(|f| f.to_str().unwrap()))
        .collect();
    assert_eq!(whole.stdout, run(&arguments).stdout);
}

#[test]
fn other_objects_are_passed_by_with_a_note() {
    let text = format!("{CONFIG_MAP}---\n{}---\n", case("single-worker.yaml"));
    let run = run_with_input(&["render", "-"], text.as_bytes());
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.stderr,
        "<stdin>:1:1: note: ConfigMap settings of v1 is not a training job: passed by\n"
    );
    assert!(run.stdout.contains("# Pod single-worker-0"));
}

#[test]
fn items_of_a_list_are_jobs() {
    let item: Value = serde_saphyr::from_str(&case("single-worker.yaml")).unwrap();
    for (api_version, kind) in [("v1", "List"), ("kubeflow.org/v1", "MXJobList")] {
        let list = serde_json::json!({"apiVersion": api_version, "kind": kind, "items": [item]});
        let text = serde_json::to_string_pretty(&list).unwrap();
        let run = run_with_input(&["render", "-"], text.as_bytes());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{kind}");
        assert!(run.stdout.contains("# Pod single-worker-0"), "{kind}");
    }
}

/// Byte for byte the same, and in both formats the same objects.
#[test]
fn output_is_stable_in_both_formats() {
    let yaml = run(&["render", "operator/tests/cases"]);
    assert_eq!(yaml.stdout, run(&["render", "operator/tests/cases"]).stdout);
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(&yaml.stdout, options).unwrap();
    let json = run(&["render", "operator/tests/cases", "--output", "json"]);
    let list: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"], Value::Array(documents));
}

#[test]
fn help_has_examples_and_exit_codes() {
    for command in [&["render"][..], &["crds"], &["local", "run"]] {
        let help = run(&[command, &["--help"]].concat());
        assert_eq!(help.code, Some(0), "{command:?}");
        assert!(
            help.stdout.contains("Examples:") && help.stdout.contains("Exit codes:"),
            "{command:?}"
        );
    }
    assert!(run(&["--version"]).stdout.starts_with("training-operator 0."));
}
