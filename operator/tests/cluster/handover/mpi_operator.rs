//! Jobs move from mpi-operator to ours and back by `manifests/takeover/mpi/mpi-operator.sh`. The test creates the objects as
//! mpi-operator does. Their launchers are pods of Jobs, which Kubernetes' own controllers manage.

use std::fs;
use std::process::Command;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, Signal, repository, wait, wait_for_all};
use training_operator_testing::manifests::objects;
use training_operator_testing::program::run;

use crate::rig::jobs::mpi_job;
use crate::rig::stage::Stage;

fn api<K: kube::Resource<Scope = kube::core::NamespaceResourceScope>>(stage: &Stage<'_>) -> Api<K>
where
    K::DynamicType: Default,
{
    Api::namespaced(stage.cluster.client(), &stage.namespace)
}

/// Creates a job of two workers with the objects and the status that mpi-operator gives it.
async fn begin(stage: &Stage<'_>, name: &str) {
    let mut job = mpi_job("v2beta1", name);
    job["metadata"]["namespace"] = json!(stage.namespace);
    let file = stage.cluster.directory().join(format!("{name}.json"));
    fs::write(&file, job.to_string()).unwrap();
    let rendered = run(&["render", file.to_str().unwrap()]);
    assert_eq!(rendered.code, Some(0), "{rendered:?}");
    stage.cluster.create(&stage.namespace, &job).await;
    let uid = stage.mpi_jobs("v2beta1").get(name).await.unwrap().uid().unwrap();
    for mut object in objects(&rendered.stdout) {
        let is_launcher = object["metadata"]["name"] == format!("{name}-launcher");
        let labels = match object["kind"] == "Pod" {
            true => {
                let mut labels = object["metadata"]["labels"].clone();
                labels
                    .as_object_mut()
                    .unwrap()
                    .remove("training.kubeflow.org/replica-type");
                labels
            }
            false => json!({"app": name}),
        };
        if object["kind"] == "Secret" {
            object["stringData"] = json!({"ssh-privatekey": "private", "ssh-publickey": "public"});
        }
        if is_launcher {
            let template = json!({"metadata": {"labels": labels}, "spec": object["spec"]});
            object = json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "spec": {"podReplacementPolicy": "Failed", "template": template},
            });
        }
        let owner = json!({
            "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": name, "uid": uid, "controller": true,
        });
        let object_name = match is_launcher {
            true => json!(format!("{name}-launcher")),
            false => object["metadata"]["name"].clone(),
        };
        object["metadata"] = json!({"name": object_name, "labels": labels, "ownerReferences": [owner]});
        object.as_object_mut().unwrap().remove("status");
        stage.cluster.create(&stage.namespace, &object).await;
    }
    let condition = |type_: &str, word: &str| {
        json!({
            "type": type_, "status": "True", "reason": format!("MPIJob{type_}"),
            "message": format!("MPIJob {}/{name} is {word}.", stage.namespace),
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({"status": {
        "conditions": [condition("Created", "created"), condition("Running", "running")],
        "replicaStatuses": {"Launcher": {"active": 1}, "Worker": {"active": 2}},
        "startTime": "2026-01-01T00:00:00Z",
    }});
    stage
        .mpi_jobs("v2beta1")
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

/// Runs the script twice, because it may be interrupted and run again.
fn script(cluster: &ControlPlane, verb: &str) {
    let kubectl = cluster.kubectl_path().parent().unwrap().display().to_string();
    let path = format!("{kubectl}:{}", std::env::var("PATH").unwrap());
    for _ in 0..2 {
        let mut command = Command::new(repository().join("manifests/takeover/mpi/mpi-operator.sh"));
        command
            .arg(verb)
            .env("PATH", &path)
            .env("KUBECONFIG", cluster.kubeconfig());
        let output = tokio::task::block_in_place(|| command.output()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

async fn until_condition(stage: &Stage<'_>, name: &str, type_: &str) {
    let holds = |condition: &Value| condition["type"] == type_ && condition["status"] == "True";
    let is = |job: Option<&DynamicObject>| {
        job.and_then(|job| job.data["status"]["conditions"].as_array())
            .is_some_and(|all| all.iter().any(holds))
    };
    wait(stage.mpi_jobs("v2beta1"), name, is).await;
}

async fn launcher(stage: &Stage<'_>, job: &str) -> String {
    let labels = format!("training.kubeflow.org/job-name={job},training.kubeflow.org/job-role=launcher");
    let pods = stage
        .pods()
        .list(&ListParams::default().labels(&labels))
        .await
        .unwrap();
    let [pod] = &*pods.items else {
        panic!("{} launchers of {job}", pods.items.len());
    };
    pod.name_any()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_jobs_are_taken_over_and_given_back_without_a_restart() {
    const NAMES: [&str; 3] = ["ends", "fails", "returns"];
    let options = Options {
        controllers: vec!["job-controller".to_owned()],
        ..Options::default()
    };
    let cluster = ControlPlane::start_at_once(options).await;
    let stage = Stage::of(&cluster, "mpi-operator").await;
    let mut before = Vec::new();
    for name in NAMES {
        begin(&stage, name).await;
        let runs = |pods: &[Pod]| {
            let phases = pods.iter().map(|pod| pod.status.as_ref()?.phase.as_deref());
            pods.len() == 3 && phases.flatten().filter(|phase| *phase == "Running").count() == 3
        };
        wait_for_all(
            stage.pods(),
            &format!("training.kubeflow.org/job-name={name}"),
            runs,
        )
        .await;
        before.push(stage.pods_of(name).await);
    }

    script(&cluster, "take");
    let operator = stage.operator_with(&["--enable-scheme=MPIJob"]);
    for (name, before) in NAMES.iter().zip(&before) {
        let is_ours = |job: Option<&DynamicObject>| {
            job.is_some_and(|job| job.data["status"]["apiVersion"] == "v2beta1")
        };
        wait(stage.mpi_jobs("v2beta1"), name, is_ours).await;
        assert_eq!(&stage.pods_of(name).await, before);
        let secret = api::<Secret>(&stage).get(&format!("{name}-ssh")).await.unwrap();
        assert_eq!(secret.data.unwrap()["ssh-privatekey"].0, b"private");
    }
    let jobs = api::<Job>(&stage).list(&ListParams::default()).await.unwrap();
    assert_eq!(jobs.items.len(), 0);
    stage.kubelet.succeeds(&launcher(&stage, "ends").await).await;
    until_condition(&stage, "ends", "Succeeded").await;
    // A launcher that fails is created again under its name.
    let failing = launcher(&stage, "fails").await;
    stage.kubelet.exits(&failing, "mpi", 1).await;
    let is_new = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.uid() != before[1].get(&failing).cloned());
    wait(stage.pods(), &failing, is_new).await;
    operator.0.signal(Signal::TERM);
    operator.0.exit_code().await;

    script(&cluster, "give");
    let name = "returns";
    let runs = |job: Option<&Job>| {
        let active = job.and_then(|job| job.status.as_ref()?.active);
        active == Some(1)
    };
    let batch = api::<Job>(&stage);
    wait(batch.clone(), &format!("{name}-launcher"), runs).await;
    assert_eq!(stage.pods_of(name).await, before[2]);
    stage.kubelet.succeeds(&launcher(&stage, name).await).await;
    let succeeded = |job: Option<&Job>| {
        let succeeded = job.and_then(|job| job.status.as_ref()?.succeeded);
        succeeded == Some(1)
    };
    wait(batch, &format!("{name}-launcher"), succeeded).await;
}
