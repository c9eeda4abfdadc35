//! Converted files. The output and the messages are in snapshots.

use std::fs;

use training_operator_testing::program::{Run, empty_directory, root, run, run_with_input};

const CASES: &str = "operator/tests/convert/cases";

fn case(name: &str) -> String {
    fs::read_to_string(root().join(CASES).join(name)).unwrap()
}

fn convert(name: &str, flags: &[&str]) -> Run {
    let file = format!("{CASES}/{name}");
    run(&[&["convert", &*file], flags].concat())
}

/// Returns the exit code, the messages and the output.
fn story(run: &Run) -> String {
    format!("exit code {}\n{}\n{}", run.code.unwrap(), run.stderr, run.stdout)
}

#[test]
fn each_shape_becomes_todays_and_stays_so() {
    for name in [
        "v1alpha1.yaml",
        "v1beta1.yaml",
        "several.yaml",
        "ancestors.yaml",
        "list.json",
        "modes.yaml",
        "label.yaml",
        "tensorflow.yaml",
        "pytorch.yaml",
        "mpi.yaml",
        "ssh.yaml",
        "arena.yaml",
        "xgboost.yaml",
        "paddle.yaml",
        "kubedl.yaml",
        "today.yaml",
    ] {
        let converted = convert(name, &[]);
        assert_eq!(converted.code, Some(0), "{name}: {}", converted.stderr);
        insta::with_settings!({snapshot_suffix => name}, {
            insta::assert_snapshot!(story(&converted));
        });
        let validated = run_with_input(&["validate", "-"], converted.stdout.as_bytes());
        assert_eq!(validated.code, Some(0), "{name}: {}", validated.stderr);
        let again = run_with_input(&["convert", "-"], converted.stdout.as_bytes());
        assert_eq!((again.code, &*again.stderr), (Some(0), ""), "{name}");
        assert_eq!(again.stdout, converted.stdout, "{name}");
        let checked = convert(name, &["--check"]);
        assert_eq!((checked.code, &*checked.stdout), (Some(1), ""), "{name}");
        assert_eq!(checked.stderr, converted.stderr, "{name}");
        let checked = run_with_input(&["convert", "--check", "-"], converted.stdout.as_bytes());
        assert_eq!((checked.code, &*checked.stdout), (Some(0), ""), "{name}");
    }
}

#[test]
fn unsupported_fields_are_dropped_only_on_request() {
    let refused = convert("lossy.yaml", &[]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    let lossy = convert("lossy.yaml", &["--lossy"]);
    assert_eq!(lossy.code, Some(0));
    insta::assert_snapshot!(format!("{}\n{}", story(&refused), story(&lossy)));
}

#[test]
fn unknown_fields_are_dropped_only_on_request() {
    let job = "apiVersion: kubeflow.org/v1alpha2\nkind: MPIJob\nmetadata: {name: a}\nspec:\n  odd: 1\n  mpiReplicaSpecs:\n    \
               Launcher: &r\n      template:\n        spec:\n          imagePullPolicy: Always\n          \
               containers: [{name: mpi, image: x, securityContext: {fsGroup: 1}}]\n    Worker: *r\n";
    let refused = run_with_input(&["convert", "-"], job.as_bytes());
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    assert!(
        refused.stderr.contains(
            "unknown field; move it to spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].imagePullPolicy, or \
             remove the field with --lossy"
        ),
        "{}",
        refused.stderr
    );
    let lossy = run_with_input(&["convert", "--lossy", "-"], job.as_bytes());
    assert_eq!(lossy.code, Some(0), "{}", lossy.stderr);
    for gone in ["odd", "imagePullPolicy", "fsGroup"] {
        assert!(!lossy.stdout.contains(gone), "{gone}");
        assert!(
            lossy.stderr.contains(&format!("{gone}: unknown field: removed")),
            "{gone}"
        );
    }
    let valid = run_with_input(&["validate", "-"], lossy.stdout.as_bytes());
    assert_eq!(valid.code, Some(0), "{}", valid.stdout);
    // A misspelled field is a mistake.
    let typo = run_with_input(
        &["convert", "--lossy", "-"],
        job.replace("odd", "runPoilcy").as_bytes(),
    );
    assert_eq!(typo.code, Some(1), "{}", typo.stderr);
}

#[test]
fn an_unknown_field_of_an_early_mpijob_has_the_fields_of_its_version_and_one_remedy() {
    let job = "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {name: a}\nspec:\n  replicas: 1\n  odd: 1\n  \
               template: {spec: {containers: [{name: mpi, image: x}]}}\n";
    let refused = run_with_input(&["convert", "-"], job.as_bytes());
    assert_eq!(refused.code, Some(1));
    for part in [
        "<stdin>:6:3: spec.odd: unknown field of v1alpha1, which has activeDeadlineSeconds, ",
        "template, launcherResources, mountsOnLauncher; remove the field with --lossy\n",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let typo = run_with_input(
        &["convert", "--lossy", "-"],
        job.replace("odd", "GPUs").as_bytes(),
    );
    assert_eq!(typo.code, Some(1));
    assert!(
        typo.stderr
            .contains("spec.GPUs: unknown field of v1alpha1; did you mean gpus?"),
        "{}",
        typo.stderr
    );
    let lossy = run_with_input(&["convert", "--lossy", "-"], job.as_bytes());
    assert_eq!(lossy.code, Some(0), "{}", lossy.stderr);
    assert!(!lossy.stdout.contains("odd"));
}

/// The API server rejects a pod that mounts a volume it does not have.
#[test]
fn no_pod_of_a_converted_job_mounts_a_volume_that_it_lacks() {
    for name in ["ssh.yaml", "arena.yaml", "mpi.yaml"] {
        let converted = convert(name, &[]);
        let rendered = run_with_input(&["render", "-", "-o", "json"], converted.stdout.as_bytes());
        assert_eq!(rendered.code, Some(0), "{name}: {}", rendered.stderr);
        let objects: serde_json::Value = serde_json::from_str(&rendered.stdout).unwrap();
        let all = objects["items"].as_array().unwrap();
        let pods: Vec<_> = all.iter().filter(|object| object["kind"] == "Pod").collect();
        assert!(!pods.is_empty(), "{name}");
        for pod in pods {
            let list = |list: &serde_json::Value| list.as_array().cloned().unwrap_or_default();
            let volumes = list(&pod["spec"]["volumes"]);
            let containers = [
                list(&pod["spec"]["initContainers"]),
                list(&pod["spec"]["containers"]),
            ]
            .concat();
            for mount in containers
                .iter()
                .flat_map(|container| list(&container["volumeMounts"]))
            {
                let is_there = volumes.iter().any(|volume| volume["name"] == mount["name"]);
                assert!(is_there, "{name} {} {mount}", pod["metadata"]["name"]);
            }
        }
    }
}

#[test]
fn samples_of_the_paddle_operator_are_named() {
    let job = "apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: a}\nspec:\n  \
               sampleSetRef: {name: imagenet, mountPath: /data}\n  worker: {replicas: 1, template: {spec: {containers: [{name: a, image: x}]}}}\n";
    let refused = run_with_input(&["convert", "-"], job.as_bytes());
    let problem = "spec.sampleSetRef: this operator does not cache sample sets; mount a volume with the data";
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(problem), "{}", refused.stderr);
    let lossy = run_with_input(&["convert", "--lossy", "-"], job.as_bytes());
    assert_eq!(lossy.code, Some(0), "{}", lossy.stderr);
}

#[test]
fn a_dropped_field_without_effect_is_named() {
    let template = "{spec: {containers: [{name: pytorch, image: x}]}}";
    let mpi = "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {name: a}\nspec:\n  template: ";
    let pytorch = "apiVersion: kubeflow.org/v1alpha1\nkind: PyTorchJob\nmetadata: {name: a}\nspec:\n  replicaSpecs:\n  - template: ";
    for (job, fields, what) in [
        (
            mpi,
            "  replicas: 2\n  gpusPerNode: 2\n",
            "spec.gpusPerNode: removed: it has no effect without a number of devices",
        ),
        (
            mpi,
            "  replicas: 2\n  processingUnitsPerNode: 2\n",
            "spec.processingUnitsPerNode: removed: it has no effect without a number of devices",
        ),
        (
            mpi,
            "  gpus: 4\n  gpusPerNode: 2\n",
            "spec.gpusPerNode: removed: each worker sets its own devices",
        ),
        (
            mpi,
            "  gpus: 4\n  replicas: 7\n",
            "spec.replicas: removed: the number of devices determined the number of",
        ),
        (
            pytorch,
            "  backend: tcp\n",
            "spec.backend: removed: no operator ever read it",
        ),
        (
            pytorch,
            "  masterPort: '23456'\n",
            "spec.masterPort: removed: no operator ever read it",
        ),
        (
            pytorch,
            "    pytorchReplicaType: MASTER\n",
            "spec.replicaSpecs: moved to spec.pytorchReplicaSpecs",
        ),
    ] {
        let job = format!("{job}{template}\n{fields}");
        let run = run_with_input(&["convert", "-"], job.as_bytes());
        assert_eq!(run.code, Some(0), "{job}{}", run.stderr);
        assert!(run.stderr.contains(what), "{what}\n{}", run.stderr);
    }
}

#[test]
fn features_of_other_operators_are_named() {
    let refused = convert("foreign.yaml", &[]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    insta::assert_snapshot!(refused.stderr);
}

#[test]
fn a_job_that_may_mean_anything_is_refused() {
    let refused = convert("wrong.yaml", &["--lossy"]);
    assert_eq!((refused.code, &*refused.stdout), (Some(1), ""));
    insta::assert_snapshot!(refused.stderr);
}

#[test]
fn bad_yaml_and_missing_files_are_reported() {
    let bad = run_with_input(&["convert", "-"], b"a: 1\n---\nb: 1\nb: 2\n");
    assert_eq!((bad.code, &*bad.stdout), (Some(2), ""));
    assert_eq!(
        bad.stderr,
        "<stdin>:4:1: duplicate key b, first in line 2; keep one\n"
    );
    let gone = run(&["convert", "no/such.yaml"]);
    assert_eq!(
        (gone.code, &*gone.stderr),
        (Some(2), "no/such.yaml: no such file\n")
    );
}

#[test]
fn files_are_written_in_place_if_they_change() {
    let directory = empty_directory("convert-in-place");
    for name in ["several.yaml", "wrong.yaml"] {
        fs::write(directory.join(name), case(name)).unwrap();
    }
    fs::write(
        directory.join("crlf.yaml"),
        case("v1beta1.yaml").replace('\n', "\r\n"),
    )
    .unwrap();
    let converted = run(&["convert", "--in-place", directory.to_str().unwrap()]);
    assert_eq!(
        (converted.code, &*converted.stdout),
        (Some(1), ""),
        "for the wrong one"
    );
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(read("several.yaml"), convert("several.yaml", &[]).stdout);
    assert_eq!(read("wrong.yaml"), case("wrong.yaml"));
    assert_eq!(
        read("crlf.yaml"),
        convert("v1beta1.yaml", &[]).stdout.replace('\n', "\r\n")
    );
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        3,
        "nothing else is left"
    );
}

#[test]
fn validate_names_the_command_for_each_version_before_todays() {
    for name in [
        "modes",
        "tensorflow",
        "pytorch",
        "mpi",
        "xgboost",
        "paddle",
        "kubedl",
    ] {
        let file = format!("{CASES}/{name}.yaml");
        let validated = run(&["validate", &file]);
        let text = case(&format!("{name}.yaml"));
        let jobs = text.lines().filter(|line| line.starts_with("apiVersion: "));
        // The jobs of kind MXJob are served.
        let old = jobs
            .filter(|line| !(name == "modes" && line.ends_with("v1alpha2")))
            .count();
        let told = format!("training-operator convert {file}");
        let all = format!("{}{}", validated.stderr, validated.stdout);
        assert_eq!(all.matches(&told).count(), old, "{all}");
    }
}

#[test]
fn validate_and_render_name_convert_for_versions_that_are_not_served() {
    let file = format!("{CASES}/v1alpha1.yaml");
    for command in ["validate", "render"] {
        let run = run(&[command, &file]);
        let told = format!(
            "{file}:2:1: apiVersion: MXJob of kubeflow.org/v1alpha1 is no longer served; \
                            convert it with: training-operator convert {file}"
        );
        let all = format!("{}{}", run.stderr, run.stdout);
        assert!(all.contains(&told), "{command}: {all}");
    }
}
