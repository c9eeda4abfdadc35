//! `training-operator validate`.

use std::fs;
use std::path::PathBuf;

use kube_manifest::MAX_FILE_BYTES;
use serde_json::Value;
use training_operator_testing::program::{empty_directory, root, run, run_with_input};

const WARNED: &str = "operator/tests/warned/training.yaml";
const BAD: &str = "operator/tests/bad/negative-replicas.yaml";
const GOOD: &str = "operator/tests/cases/single-worker.yaml";

#[test]
fn a_likely_mistake_is_a_warning_and_not_an_error() {
    let run = run(&["validate", "operator/tests/warned"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(run.stdout);
}

/// A warning about a valid example would be a guess.
#[test]
fn examples_and_cases_have_no_warnings_but_the_certain_ones() {
    let [examples, cases] = ["examples/mxnet", "operator/tests/cases"].map(|jobs| run(&["validate", jobs]));
    assert_eq!((examples.code, cases.code), (Some(0), Some(0)));
    insta::assert_snapshot!(examples.stdout + &cases.stdout);
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
    let good = fs::read(root().join(GOOD)).unwrap();
    assert_eq!(run_with_input(&["validate", "-"], &good).code, Some(0));
}

#[test]
fn json_has_place_field_and_remedy() {
    let run = run(&["validate", BAD, WARNED, "--output", "json"]);
    assert_eq!(run.code, Some(1));
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["goodJobs"], 1);
    let count = |severity: &str| {
        let findings = report["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["severity"] == severity).count()
    };
    assert_eq!(report["errors"], count("error"));
    assert_eq!(report["warnings"], count("warning"));
    assert!(count("error") > 0 && count("warning") > 1, "{report}");
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

/// A repository with a job, a chart, and what belongs to other programs.
struct Repository {
    folder: PathBuf,
    job: String,
}

impl Repository {
    fn new(name: &str) -> Self {
        let repository = Self {
            folder: empty_directory(name),
            job: fs::read_to_string(root().join(GOOD)).unwrap(),
        };
        let template = repository.job.replace("name: ", "name: {{ .Release.Name }}-");
        let patch = "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: single}\nspec: {mxReplicaSpecs: {Worker: {replicas: 3}}}\n";
        for (path, text) in [
            ("jobs/a.yaml", &*repository.job),
            ("kustomization.yaml", "resources: [jobs/a.yaml]\n"),
            (
                "overlays/prod/kustomization.yaml",
                "resources: [../..]\npatches: [{path: more-workers.yaml}]\n",
            ),
            ("overlays/prod/more-workers.yaml", patch),
            ("chart/Chart.yaml", "apiVersion: v2\nname: jobs\n"),
            ("chart/values.yaml", "workers: 3\n"),
            ("chart/list.yaml", "- a\n- b\n"),
            ("chart/templates/job.yaml", &template),
            (".github/workflows/ci.yaml", "on: [push]\njobs: {}\n"),
        ] {
            repository.write(path, text);
        }
        repository
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Validates it with these flags. Returns the exit code and the output.
    fn validate(&self, flags: &[&str]) -> (Option<i32>, String) {
        let folder = self.folder.to_str().unwrap();
        let run = run(&[&["validate", folder], flags].concat());
        (run.code, run.stdout.replace(folder, "REPOSITORY"))
    }
}

#[test]
fn a_directory_may_contain_anything() {
    let repository = Repository::new("validate-anything");
    let data = fs::File::create(repository.folder.join("data.json")).unwrap();
    data.set_len(MAX_FILE_BYTES + 1).unwrap();
    let (code, output) = repository.validate(&[]);
    assert_eq!(code, Some(0), "{output}");
    insta::assert_snapshot!(output);
    // A file that the user names is meant to be a job.
    let template = repository.folder.join("chart/templates/job.yaml");
    let named = run(&["validate", template.to_str().unwrap()]);
    assert_eq!(named.code, Some(1));
    let remedy = "looks like a template: render it first";
    assert!(named.stdout.contains(remedy), "{}", named.stdout);
}

/// pre-commit passes the files that changed, and no directory.
#[test]
fn a_patch_that_is_named_is_skipped_with_the_command_that_checks_its_result() {
    let repository = Repository::new("validate-patch");
    let directory = repository.folder.join("overlays/prod");
    let patch = directory.join("more-workers.yaml");
    let build = format!(
        "kustomize build {} | training-operator validate -",
        directory.display()
    );
    let patch = patch.to_str().unwrap();
    let named = run(&["validate", patch]);
    let note =
        format!("{patch}: note: is a patch of a kustomization and is skipped; check the result: {build}\n");
    assert_eq!(
        named.stdout,
        format!("{note}0 valid jobs, 0 errors, 0 warnings\n")
    );
    assert_eq!(named.code, Some(0));
    let explained = run(&["explain", patch]);
    let remedy = format!("no training job found; check what kustomize makes: {build}\n");
    assert!(explained.stderr.ends_with(&remedy), "{}", explained.stderr);
    assert_eq!(explained.code, Some(2));
    let overlays = run(&["validate", repository.folder.join("overlays").to_str().unwrap()]);
    assert!(overlays.stdout.contains(&remedy), "{}", overlays.stdout);
}

#[test]
fn errors_in_a_repository_are_found() {
    let repository = Repository::new("validate-wrong");
    let good = repository.validate(&[]);
    for (path, from, to) in [
        ("more/typo.yaml", "kind: MXJob", "kind: MXJobs"),
        ("more/copy.yaml", "", ""),
        (
            "more/place.yaml",
            "metadata:\n",
            "metadata:\n  namespace: Team_A\n",
        ),
        (
            "more/variable.yaml",
            "    Worker:\n",
            "    Worker:\n      replicas: \"${WORKERS}\"\n",
        ),
        ("more/part.yaml", "kind: MXJob\n", ""),
    ] {
        repository.write(path, &repository.job.replacen(from, to, 1));
    }
    let (code, output) = repository.validate(&[]);
    assert_eq!(code, Some(1), "{output}");
    insta::assert_snapshot!(output);
    assert_eq!(repository.validate(&["--exclude", "more/**"]), good);
}

#[test]
fn warnings_fail_a_strict_check() {
    assert_eq!(run(&["validate", WARNED]).code, Some(0));
    assert_eq!(run(&["validate", WARNED, "--strict"]).code, Some(1));
    assert_eq!(run(&["validate", GOOD, "--strict"]).code, Some(0));
}

#[test]
fn ci_systems_get_formats_of_their_own() {
    let github = run(&["validate", BAD, WARNED, "--output", "github"]);
    assert_eq!(github.code, Some(1));
    let begin = format!("::error file={BAD},line=");
    assert!(github.stdout.starts_with(&begin), "{}", github.stdout);
    assert!(
        github
            .stdout
            .contains(&format!("\n::warning file={WARNED},line=")),
        "{}",
        github.stdout
    );
    let junit = run(&["validate", GOOD, BAD, WARNED, "--output", "junit"]);
    assert_eq!(junit.code, Some(1));
    insta::assert_snapshot!(junit.stdout);
    let strict = run(&["validate", GOOD, WARNED, "--output", "junit", "--strict"]);
    assert!(
        strict.stdout.contains("tests=\"2\" failures=\"1\""),
        "{}",
        strict.stdout
    );
}
