//! MPIJobs of v2beta1: how they differ from those of v1 in life.

use serde_json::{Value, json};
use training_job::validate::other_manager;
use training_job::{Kind, TrainingJob, render, validate};
use training_job_mpi::MPIJob;
use training_job_testbed::PlanHarness;

/// A default of the schema, by which a job of v2beta1 is known.
const DEFAULT: &str = "sshAuthMountPath: /root/.ssh";

fn harness(roles: &str) -> PlanHarness<MPIJob> {
    PlanHarness::with(roles, DEFAULT)
}

#[test]
fn a_launcher_that_fails_is_replaced_alone_as_often_as_by_a_job() {
    let mut w = harness("Launcher=1:Never Worker=2");
    assert_eq!(w.reconcile().pod_names(), ["launcher", "worker-0", "worker-1"]);
    w.all_running();
    for restart in 1..=6 {
        w.pod("launcher").exits(1);
        w.reconcile().all_replaced().all_running();
        assert_eq!(w.attempts()["launcher"], restart);
        assert_eq!(w.attempts()["worker-0"], 0, "its sshd runs on");
    }
    w.pod("launcher").exits(1);
    assert_eq!(w.reconcile().state(), "Created Failed");
}

#[test]
fn a_lost_worker_restarts_all() {
    let mut w = harness("Launcher=1 Worker=2");
    w.reconcile().all_running();
    assert_eq!(w.state(), "Created Running");
    w.pod("worker-1").evicted();
    w.reconcile().all_replaced().all_running();
    assert!(
        w.attempts().values().all(|attempt| *attempt == 1),
        "{:?}",
        w.attempts()
    );
    assert_eq!(w.state(), "Created Running");
}

#[test]
fn a_job_runs_when_its_workers_do() {
    let mut w = harness("Launcher=1 Worker=2");
    w.reconcile();
    w.pod("launcher").running();
    w.pod("worker-0").running();
    assert_eq!(w.reconcile().state(), "Created");
    w.pod("worker-1").running();
    assert_eq!(w.reconcile().state(), "Created Running");
    assert_eq!(w.message_of("Running"), "MPIJob team/job is running.");
}

/// A write through v2beta1 fills in the defaults of that version.
#[test]
fn a_job_keeps_the_version_in_which_it_was_first_seen() {
    let mut job = harness("Launcher=1 Worker=2").job;
    let written = |job: &MPIJob| job.encode_status(&Default::default(), None).unwrap()["apiVersion"].clone();
    assert_eq!(written(&job), "v2beta1");
    job.spec.ssh_auth_mount_path = None;
    job.spec.mpi_implementation = None;
    job.spec.run_launcher_as_worker = None;
    assert_eq!(written(&job), "v1");
    job.status = serde_json::from_value(json!({"apiVersion": "v1"})).unwrap();
    job.spec.ssh_auth_mount_path = Some("/root/.ssh".to_owned());
    assert_eq!(written(&job), "v1");
    assert_eq!(TrainingJob::framework(&job).controller, "mpijob-controller");
}

#[test]
fn a_job_that_mpi_operator_has_begun_is_left_alone_until_it_has_ended() {
    let mut job = harness("Launcher=1 Worker=2").job;
    assert!(other_manager(&job).is_none());
    let condition = |type_: &str, message: &str| json!({"type": type_, "status": "True", "message": message});
    let with = |job: &mut MPIJob, conditions: Value| {
        job.status = serde_json::from_value(json!({ "conditions": conditions })).unwrap();
    };
    let created = condition("Created", "MPIJob team/job is created.");
    with(&mut job, json!([created]));
    let (_, manager) = other_manager(&job).unwrap();
    assert_eq!(manager, "kubeflow.org/mpi-operator");
    with(&mut job, json!([created, condition("Succeeded", "")]));
    assert!(other_manager(&job).is_none());
    // The training operator has begun it, and a client has written it through v2beta1.
    with(&mut job, json!([condition("Created", "MPIJob job is created.")]));
    assert!(other_manager(&job).is_none());
    assert_eq!(TrainingJob::framework(&job).controller, "mpijob-controller");
}

#[test]
fn reviews_do_not_show_the_keys() {
    let job = harness("Launcher=1 Worker=2").job;
    let rendered = render::all(&validate(&job, &Default::default()).unwrap());
    let secret = rendered
        .objects
        .iter()
        .find(|object| object.kind.kind == "Secret")
        .unwrap();
    assert_eq!(secret.content, json!({"type": "kubernetes.io/ssh-auth"}));
    let drawn = secret.drawn(&[7; 66]);
    assert!(drawn.content["data"]["ssh-privatekey"].is_string());
}

#[test]
fn only_v2beta1_has_defaults() {
    let definition = Kind::of::<MPIJob>().definition_without_rules();
    let versions = definition.spec.versions.iter();
    let found: Vec<(String, bool, Value)> = versions
        .map(|version| {
            let schema = serde_json::to_value(&version.schema).unwrap();
            let path = "/openAPIV3Schema/properties/spec/properties/sshAuthMountPath/default";
            (
                version.name.clone(),
                version.storage,
                schema.pointer(path).cloned().unwrap_or_default(),
            )
        })
        .collect();
    let expected = [("v1", true, Value::Null), ("v2beta1", false, json!("/root/.ssh"))];
    assert_eq!(
        found,
        expected.map(|(name, stored, default)| (name.to_owned(), stored, default))
    );
}
