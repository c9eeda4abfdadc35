//! Objects of manifests that are not jobs, jobs of clusters, and input that is rejected before anything starts.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};
use training_operator_testing::local_run::manifest::Manifest;
use training_operator_testing::local_run::run::Run;
use training_operator_testing::local_run::trial::{Trial, local_run};

/// Returns a job whose container mounts the volume `data` at /data and prints a file of it.
fn with_volume() -> Manifest {
    let mount = json!([{"name": "data", "mountPath": "/data"}]);
    let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    Manifest::shell("reads", 1, "cat /data/numbers")
        .each_container(|container| container["volumeMounts"] = mount.clone())
        .each_role(|role| role["template"]["spec"]["volumes"] = volume.clone())
}

#[test]
fn a_volume_is_a_given_directory() {
    let trial = Trial::new();
    fs::write(trial.dir.join("numbers"), "1 2 3\n").unwrap();
    let given = format!("data={}", trial.dir.display());
    let ended = trial.run_with(&with_volume(), &["--mount", &given]).end();
    ended.expect_code(0);
    ended.only(&["worker-0 | 1 2 3"]);
    ended.only(&["training-operator: not applied on this machine: image none"]);
}

#[test]
fn a_volume_without_a_directory_is_named_before_the_start() {
    let trial = Trial::new();
    let ended = trial.run(&with_volume()).end();
    ended.expect_code(1);
    ended.only(&["training-operator: not applied on this machine: volume data (/data), image none"]);
}

fn with_devices() -> Manifest {
    let limits = json!({"limits": {"example.com/accelerator": 4}});
    Manifest::shell("with-devices", 1, "echo started")
        .each_container(|container| container["resources"] = limits.clone())
}

#[test]
fn a_pod_waits_for_devices_that_the_machine_does_not_have() {
    let trial = Trial::new();
    let mut run = trial.run(&with_devices());
    run.line(&[
        "worker-0 condition message: 0/1 nodes are available: 1 Insufficient example.com/accelerator.",
    ]);
    run.signal(Signal::INT);
    let ended = run.end();
    ended.expect_code(130);
    ended.only(&[
        "training-operator: Worker: stays Pending, because it requests example.com/accelerator 4 and this machine has 0; \
         --ignore-devices starts it without",
    ]);
    assert_eq!(ended.all(&["started"]), Vec::<&str>::new());
}

#[test]
fn a_pod_starts_without_its_devices_on_request() {
    let trial = Trial::new();
    let ended = trial.run_with(&with_devices(), &["--ignore-devices"]).end();
    ended.expect_code(0);
    ended.only(&["worker-0 | started"]);
    ended.only(&["training-operator: not applied on this machine: example.com/accelerator 4, image none"]);
}

#[test]
fn a_mount_of_no_volume_is_rejected() {
    let trial = Trial::new();
    let given = format!("date={}", trial.dir.display());
    let ended = trial.run_with(&with_volume(), &["--mount", &given]).end();
    ended.expect_code(2);
    let last = ended.err.last().unwrap();
    assert_eq!(
        last,
        "training-operator: local run: --mount: no pod has a volume \"date\"; use one of data"
    );
}

/// As `kubectl get mxjobs -o yaml` prints them, with a ConfigMap.
#[test]
fn a_list_of_a_cluster_runs() {
    let trial = Trial::new();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "rates", "namespace": "team-a", "resourceVersion": "12", "uid": "1"},
        "data": {"rate": "0.1"},
    });
    let source = json!([{"configMapRef": {"name": "rates"}}]);
    let job = Manifest::shell("exported", 1, "echo rate=$rate")
        .each_container(|container| container["envFrom"] = source.clone());
    let mut job: Value = serde_json::from_str(&job.text()).unwrap();
    for (field, value) in [
        ("namespace", json!("team-a")),
        ("uid", json!("2")),
        ("resourceVersion", json!("13")),
        ("generation", json!(1)),
        ("creationTimestamp", json!("2024-01-01T00:00:00Z")),
        (
            "managedFields",
            json!([{"manager": "kubectl", "operation": "Update"}]),
        ),
    ] {
        job["metadata"][field] = value;
    }
    job["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    let list =
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [map, job]});
    let file = trial.file("list.yaml", &list.to_string());
    let ended = Run::start(local_run().arg(file)).end();
    ended.expect_code(0);
    ended.only(&["worker-0 | rate=0.1"]);
}

#[track_caller]
fn expect_rejected(manifest: &Manifest, message: &str) {
    let trial = Trial::new();
    let ended = trial.run(manifest).end();
    ended.expect_code(2);
    let errors = ended.err.iter().filter(|line| !line.contains("warning:"));
    let errors: Vec<_> = errors.collect();
    assert!(
        errors.len() == 1 && errors[0].ends_with(message),
        "{}",
        ended.transcript()
    );
    assert!(ended.out.is_empty(), "{}", ended.transcript());
}

/// Images are not pulled, so no image provides a command.
#[test]
fn a_container_without_a_command_is_rejected() {
    expect_rejected(
        &Manifest::shell("bare", 2, "").command(&Value::Null),
        "spec.mxReplicaSpecs.Worker.template.spec.containers[0].command: must be set, because images are not pulled: \
         the command of none is unknown; add the command that runs on this machine, such as [python, train.py]",
    );
}

#[test]
fn a_mount_without_its_volume_is_rejected() {
    expect_rejected(
        &with_volume().each_role(|role| role["template"]["spec"]["volumes"] = Value::Null),
        "spec.mxReplicaSpecs.Worker.template.spec.containers[0].volumeMounts[0].name: the pod has no volume \"data\"; \
         add it to spec.mxReplicaSpecs.Worker.template.spec.volumes",
    );
}

#[test]
fn directories_that_cannot_be_used_are_named() {
    let trial = Trial::new();
    let file = trial.write(&Manifest::shell("unlogged", 1, "exit 0"));
    let path = file.to_str().unwrap();
    let ended = Run::start(local_run().args(["--keep-logs", path]).arg(&file)).end();
    ended.expect_code(2);
    let begin = format!("training-operator: local run: --keep-logs: files cannot be written to {path}: ");
    assert!(
        ended.err.last().unwrap().starts_with(&begin),
        "{}",
        ended.transcript()
    );

    let ended = Run::start(local_run().env("TMPDIR", "/not/there").arg(&file)).end();
    ended.expect_code(2);
    assert_eq!(
        ended.err.last().unwrap(),
        "training-operator: local run: the node cannot be started: the temporary directory /not/there: No such file or \
         directory (os error 2); set TMPDIR"
    );
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let trial = Trial::new();
    let file = trial.write(&Manifest::shell("full", 1, "echo lost"));
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "exec \"$0\" \"$@\" > /dev/full"]);
    let run = local_run();
    let ended = Run::start(shell.arg(run.get_program()).args(run.get_args()).arg(file)).end();
    ended.expect_code(2);
    assert_eq!(
        ended.err.last().unwrap(),
        "training-operator: local run: standard output: No space left on device (os error 28)"
    );
}

/// Returns a job whose container takes its variables from the ConfigMap `rates`.
fn with_rates() -> Manifest {
    let source = json!([{"configMapRef": {"name": "rates"}}]);
    Manifest::shell("rated", 1, "echo $rate")
        .each_container(|container| container["envFrom"] = source.clone())
}

#[test]
fn settings_may_have_a_file_of_their_own() {
    let trial = Trial::new();
    let rates = "{apiVersion: v1, kind: ConfigMap, metadata: {name: rates}, data: {rate: '0.1'}}";
    let rates = trial.file("rates.yaml", rates);
    let ended = trial.run_with(&with_rates(), &[rates.to_str().unwrap()]).end();
    ended.expect_code(0);
    ended.only(&["worker-0 | 0.1"]);
}

#[test]
fn settings_that_are_in_no_file_are_an_error_before_the_start() {
    let trial = Trial::new();
    let ended = trial.run(&with_rates()).end();
    ended.expect_code(2);
    let error = "envFrom[0].configMapRef.name: ConfigMap rates is in none of the files; add the ConfigMap to the files, or set \
                 optional: true to run without it";
    assert!(ended.err.last().unwrap().ends_with(error), "{:?}", ended.err);
}
