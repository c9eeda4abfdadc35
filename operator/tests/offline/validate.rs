//! `training-operator validate`.

use serde_json::Value;
use training_operator_testing::program::{root, run, run_with_input};

const WARNED: &str = "operator/tests/warned/training.yaml";
const BAD: &str = "operator/tests/bad/negative-replicas.yaml";
const GOOD: &str = "operator/tests/cases/single-worker.yaml";

#[test]
fn what_is_surely_not_meant_is_a_warning_and_no_failure() {
    let run = run(&["validate", "operator/tests/warned"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(run.stdout);
}

/// A warning about a valid example would be a guess.
#[test]
fn examples_and_cases_have_no_warnings_but_the_certain_ones() {
    let run = run(&["validate", "examples/mxnet", "operator/tests/cases"]);
    assert_eq!(run.code, Some(0));
    insta::assert_snapshot!(run.stdout);
}

/// The errors have the same files, positions, fields and remedies. Only the exit codes differ.
#[test]
fn errors_are_those_of_render() {
    let validate = run(&["validate", BAD, "operator/tests/bad/broken-quote.yaml"]);
    let render = run(&["render", BAD, "operator/tests/bad/broken-quote.yaml"]);
    assert_eq!((validate.code, render.code), (Some(1), Some(2)));
    let findings = validate
        .stdout
        .strip_suffix("0 valid jobs, 2 errors, 0 warnings\n");
    assert_eq!(findings, Some(render.stderr.as_str()));
}

#[test]
fn exit_codes_are_as_documented() {
    assert_eq!(run(&["validate", GOOD]).code, Some(0));
    assert_eq!(run(&["validate", GOOD, BAD]).code, Some(1));
    assert_eq!(run(&["validate", BAD, "no/such/file.yaml"]).code, Some(2));
    assert_eq!(run(&["validate"]).code, Some(2));
    let good = std::fs::read(root().join(GOOD)).unwrap();
    assert_eq!(run_with_input(&["validate", "-"], &good).code, Some(0));
}

#[test]
fn json_has_place_field_and_remedy() {
    let run = run(&["validate", BAD, WARNED, "--output", "json"]);
    assert_eq!(run.code, Some(1));
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["goodJobs"], 1);
    let first = &report["findings"][0];
    assert_eq!(
        (&first["severity"], &first["file"]),
        (&"error".into(), &BAD.into())
    );
    for number in ["line", "column"] {
        assert!(first[number].as_u64().unwrap() > 0, "{first}");
    }
    for text in ["field", "problem"] {
        assert!(!first[text].as_str().unwrap().is_empty(), "{first}");
    }
    let findings = report["findings"].as_array().unwrap();
    // A bound in the problem implies the remedy; every other finding has one.
    let has_remedy = |finding: &&Value| {
        finding["remedy"]
            .as_str()
            .is_some_and(|remedy| !remedy.is_empty())
    };
    assert!(
        findings.iter().any(|finding| has_remedy(&finding)),
        "{findings:?}"
    );
    assert!(findings.iter().any(|finding| finding["severity"] == "warning"));
}

#[test]
fn sarif_points_into_the_files() {
    let run = run(&["validate", BAD, WARNED, "no/such file.yaml", "--output", "sarif"]);
    assert_eq!(run.code, Some(2));
    let log: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let tool = &log["runs"][0]["tool"]["driver"];
    let rules: Vec<_> = tool["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["id"])
        .collect();
    let results = log["runs"][0]["results"].as_array().unwrap();
    for result in results {
        assert!(rules.contains(&&result["ruleId"]), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
    }
    let place = |n: usize| &results[n]["locations"][0]["physicalLocation"];
    assert_eq!(place(0)["artifactLocation"]["uri"], BAD);
    assert!(place(0)["region"]["startLine"].as_u64().unwrap() > 1);
    let last = place(results.len() - 1);
    assert_eq!(last["artifactLocation"]["uri"], "no/such%20file.yaml");
    assert!(last.get("region").is_none());
}
