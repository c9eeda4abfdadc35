//! Tests the errors of a bad manifest.

use training_job_local::{Jobs, RunError};
use training_job_testbed::ToyJob;

pub(crate) const GOOD: &str = "\
apiVersion: kubeflow.org/v1
kind: ToyJob
metadata:
  name: blocks
spec:
  runPolicy:
    backoffLimit: 3
  replicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: toy
            image: example.com/toy:1
";

pub(crate) fn jobs() -> Jobs {
    Jobs::default().kind::<ToyJob>()
}

/// Returns the errors of the good manifest with one change, without the file's name.
fn errors(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from));
    match jobs().yaml(&GOOD.replacen(from, to, 1)) {
        Ok(_) => Vec::new(),
        Err(error) => {
            assert!(error.is_bad_input());
            let lines = error.to_string();
            let lines = lines.lines().map(|line| line.strip_prefix("<yaml>:").unwrap());
            lines.map(str::to_owned).collect()
        }
    }
}

#[test]
fn a_good_manifest_is_taken() {
    assert!(errors("", "").is_empty());
}

#[test]
fn a_misspelt_field_is_reported_with_its_line() {
    assert_eq!(
        errors("replicaSpecs:", "replicaSpec:"),
        [
            "5:1: spec.replicaSpecs: must have at least one role; add one of Scheduler, Server, Worker",
            "8:3: spec.replicaSpec: unknown field; did you mean replicaSpecs?",
        ]
    );
    assert_eq!(
        errors("image:", "imgae:"),
        [
            "14:13: spec.replicaSpecs.Worker.template.spec.containers[0].image: must be set; name the image to run",
            "15:13: spec.replicaSpecs.Worker.template.spec.containers[0].imgae: unknown field; did you mean image?",
        ]
    );
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_its_line() {
    assert_eq!(
        errors("replicas: 2", "replicas: two"),
        ["10:7: spec.replicaSpecs.Worker.replicas: must be an integer (is \"two\")"]
    );
    assert_eq!(
        errors("name: blocks", "name: on"),
        ["4:3: metadata.name: must be a string (is true); put it in quotes"],
        "on is a boolean to kubectl"
    );
}

#[test]
fn all_errors_of_a_manifest_are_reported_at_once() {
    let two = format!("{GOOD}---\n{GOOD}---\na: 1\na: 2\n");
    let text = two
        .replacen("backoffLimit: 3", "backoffLimit: -3", 1)
        .replacen("replicas: 2", "replicas: two", 1)
        .replace(
            "---\napiVersion: kubeflow.org/v1",
            "---\napiVersion: kubeflow.org/v3",
        );
    let error = jobs().manifest("jobs/blocks.yaml", &text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "jobs/blocks.yaml:7:5: spec.runPolicy.backoffLimit: must be at least 0 (is -3)\n\
         jobs/blocks.yaml:10:7: spec.replicaSpecs.Worker.replicas: must be an integer (is \"two\")\n\
         jobs/blocks.yaml:17:1: apiVersion: unknown API version \"kubeflow.org/v3\" of ToyJob; use one of kubeflow.org/v1\n\
         jobs/blocks.yaml:34:1: duplicate key a, first in line 33; keep one"
    );
}

#[test]
fn other_objects_and_duplicate_jobs_are_reported_with_their_lines() {
    let other = GOOD.replace("kind: ToyJob", "kind: PlayJob");
    let error = jobs().yaml(&other).unwrap_err();
    let expected = "<yaml>:2:1: kind: unknown kind \"PlayJob\"; use ToyJob";
    assert_eq!(error.to_string(), expected);

    assert_eq!(
        errors("kind: ToyJob\n", ""),
        ["1:1: kind: must be a non-empty string; set the kind of the object"]
    );
    assert_eq!(
        errors("kubeflow.org/v1", "example.org/v1"),
        ["1:1: apiVersion: unknown API version \"example.org/v1\" of ToyJob; use one of kubeflow.org/v1"]
    );

    let error = jobs().yaml(&format!("{GOOD}---\n{GOOD}")).unwrap_err();
    let expected = "<yaml>:17:1: duplicate job ToyJob blocks; give each job its own name";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_object_that_is_given_as_a_value_is_checked_against_its_schema() {
    let object = serde_json::json!({
        "apiVersion": "kubeflow.org/v1", "kind": "ToyJob", "metadata": {"name": "blocks"},
        "spec": {"replicaSpecs": {"Worker": {"replicas": 1, "tmplate": {}, "template": {"spec": {"containers": [
            {"name": "toy", "image": "example.com/toy:1"},
        ]}}}}},
    });
    let error = jobs().job(&object).unwrap_err();
    assert!(matches!(error, RunError::Invalid { .. }));
    assert_eq!(
        error.to_string(),
        "ToyJob blocks: spec.replicaSpecs.Worker.tmplate: unknown field; did you mean template?"
    );
}
