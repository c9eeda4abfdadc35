//! Converted files. The output and the messages are in snapshots, and in `operator/tests/offline/cases/convert.t`.

use training_operator_testing::program::{Run, run, run_with_input};

const CASES: &str = "operator/tests/convert/cases";

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
fn a_job_of_v1_becomes_one_of_v2beta1_and_stays_so() {
    let converted = convert("exec.yaml", &["--mpi-ssh"]);
    assert_eq!(converted.code, Some(0), "{}", converted.stderr);
    insta::assert_snapshot!(story(&converted));
    let again = run_with_input(&["convert", "--mpi-ssh", "-"], converted.stdout.as_bytes());
    assert_eq!((again.code, &*again.stderr), (Some(0), ""));
    assert_eq!(again.stdout, converted.stdout);
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
