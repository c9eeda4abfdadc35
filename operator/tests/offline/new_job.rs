//! `training-operator new`.

use training_operator_testing::program::{run, run_with_input};

/// Returns the manifest of a first job of this kind, which must be valid without warnings and have this many pods.
#[track_caller]
fn expect_manifest(arguments: &[&str], pods: usize) -> String {
    let command = ["--", "mycommand", "--flag", "two words"];
    let printed = run(&[&["new"], arguments, &command].concat());
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (Some(0), ""),
        "{arguments:?}"
    );
    let manifest = printed.stdout;
    let checked = run_with_input(&["validate", "--strict", "-"], manifest.as_bytes());
    assert_eq!(checked.code, Some(0), "{manifest}\n{}", checked.stderr);
    let rendered = run_with_input(&["render", "-"], manifest.as_bytes());
    assert_eq!(rendered.code, Some(0), "{manifest}\n{}", rendered.stderr);
    assert_eq!(
        rendered.stdout.matches("\nkind: Pod\n").count(),
        pods,
        "{}",
        rendered.stdout
    );
    assert!(rendered.stdout.contains("- two words\n"), "{}", rendered.stdout);
    manifest
}

#[test]
fn every_kind_has_a_first_job() {
    for (kind, pods) in [
        ("MXJob", 5),
        ("TFJob", 3),
        ("XGBoostJob", 4),
        ("PyTorchJob", 3),
        ("JAXJob", 3),
        ("PaddleJob", 3),
        ("MPIJob", 4),
        ("TfJob", 4),
    ] {
        expect_manifest(&[kind, "--workers", "3"], pods);
    }
    expect_manifest(&["MxJob", "--workers", "3", "--set", "spec.jobMode=dist"], 5);
}

/// The kinds that the test above lists.
#[test]
fn the_kinds_are_those_of_the_help() {
    let help = run(&["new", "--help"]).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let kinds = "MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob";
    assert!(help.contains(&format!("[possible values: {kinds}]")), "{help}");
    let unknown = run(&["new", "TorchJob", "--", "true"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("'PyTorchJob'"), "{}", unknown.stderr);
}

#[test]
fn a_kind_has_the_names_of_its_framework() {
    for (name, kind) in [
        ("mxnet", "MXJob"),
        ("tensorflow", "TFJob"),
        ("torch", "PyTorchJob"),
        ("PyTorch", "PyTorchJob"),
        ("paddlepaddle", "PaddleJob"),
        ("horovod", "MPIJob"),
        ("jax", "JAXJob"),
    ] {
        let printed = run(&["new", name, "--", "true"]);
        assert!(
            printed.stdout.contains(&format!("\nkind: {kind}\n")),
            "{name}: {}",
            printed.stderr
        );
    }
    let option = run(&["new", "--kind", "jax", "--", "true"]);
    assert_eq!(option.stdout, run(&["new", "JAXJob", "--", "true"]).stdout);
}

/// `--set` changes no roles, because other roles are another training. Its warnings are shown.
#[test]
fn a_field_with_a_warning_keeps_the_roles() {
    for (kind, field) in [
        ("PyTorchJob", "pytorch"),
        ("TFJob", "tf"),
        ("PaddleJob", "paddle"),
    ] {
        let set = format!("spec.{field}ReplicaSpecs.Worker.restartPolicy=Never");
        let printed = run(&["new", kind, "--workers", "2", "--set", &set, "--", "true"]);
        assert_eq!(printed.code, Some(0), "{kind}");
        assert!(
            printed
                .stderr
                .starts_with("warning: spec.runPolicy.backoffLimit: "),
            "{}",
            printed.stderr
        );
        assert_eq!(
            printed.stdout.matches("restartPolicy: ").count(),
            1,
            "{}",
            printed.stdout
        );
    }
    let named = run(&["new", "JAXJob", "--set", "metadata.namespace=ml", "--", "true"]);
    assert!(named.stdout.contains("\n  namespace: ml\n"), "{}", named.stderr);
}

#[test]
fn name_and_image_are_the_given_ones() {
    let arguments = ["JAXJob", "--name", "digits", "--image", "example.com/digits:1"];
    let manifest = expect_manifest(&arguments, 2);
    assert!(
        manifest.contains("  name: digits\n") && manifest.contains("image: example.com/digits:1\n"),
        "{manifest}"
    );
}

/// The workers of an MPI job run what the operator starts.
#[test]
fn a_container_with_a_command_of_the_operator_gets_none() {
    let manifest = expect_manifest(&["MPIJob"], 3);
    assert_eq!(manifest.matches("- mycommand\n").count(), 1, "{manifest}");
}

#[test]
fn values_that_a_job_may_not_have_are_rejected() {
    let bad = run(&["new", "JAXJob", "--name", "My_Job", "--", "true"]);
    assert_eq!((bad.code, bad.stdout.as_str()), (Some(2), ""));
    assert!(
        bad.stderr
            .starts_with("training-operator: JAXJob: metadata.name: "),
        "{}",
        bad.stderr
    );
    let bad = run(&["new", "MxJob", "--", "true"]);
    let expected = "training-operator: MxJob: spec.jobMode: unknown value \"\"; use one of local, dist\n";
    assert_eq!((bad.code, bad.stderr.as_str()), (Some(2), expected));
    assert_eq!(
        run(&["new", "JAXJob", "--workers", "0", "--", "true"]).code,
        Some(2)
    );
    assert_eq!(run(&["new", "JAXJob"]).code, Some(2));
}
