//! MPIJobs of both versions under one definition, on a real API server.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, repository, wait};
use training_operator_testing::manifests::objects;
use training_operator_testing::program::run;

use crate::rig::jobs::mpi_job;
use crate::rig::stage::Stage;

/// Waits until a field of a job's status has this value.
async fn until(api: &Api<DynamicObject>, name: &str, field: &str, expected: &str) {
    let has = |job: Option<&DynamicObject>| job.is_some_and(|job| job.data["status"][field] == expected);
    wait(api.clone(), name, has).await;
}

#[tokio::test]
async fn a_job_runs_by_the_version_in_which_it_was_created() {
    let stage = Stage::new("two-versions").await;
    let (cluster, namespace) = (stage.cluster, &*stage.namespace);
    let _operator = stage.operator_with(&["--enable-scheme=MPIJob"]);
    let (v1, v2beta1) = (stage.mpi_jobs("v1"), stage.mpi_jobs("v2beta1"));
    for version in ["v1", "v2beta1"] {
        cluster
            .create(namespace, &mpi_job(version, &format!("of-{version}")))
            .await;
    }
    // Both are stored as v1, and each version shows both.
    for (api, name, expected) in [(&v1, "of-v2beta1", "v2beta1"), (&v2beta1, "of-v1", "v1")] {
        until(api, name, "apiVersion", expected).await;
    }
    // The API server fills the defaults of v2beta1 into a job of v1 that is written through v2beta1.
    let label = Patch::Merge(json!({"metadata": {"labels": {"written": "through-v2beta1"}}}));
    v2beta1
        .patch("of-v1", &PatchParams::default(), &label)
        .await
        .unwrap();
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"runPolicy": {"suspend": suspend}}}));
    let written = v1
        .patch("of-v1", &PatchParams::default(), &suspend(true))
        .await
        .unwrap();
    assert_eq!(written.data["spec"]["sshAuthMountPath"], "/root/.ssh");
    stage.until_pods("of-v1", 0).await;
    v1.patch("of-v1", &PatchParams::default(), &suspend(false))
        .await
        .unwrap();
    let pods = stage.until_pods("of-v1", 3).await;
    let label = |pod: &k8s_openapi::api::core::v1::Pod| pod.metadata.labels.clone().unwrap_or_default();
    assert!(
        pods.iter()
            .all(|pod| label(pod)["training.kubeflow.org/operator-name"] == "mpijob-controller")
    );
    let config = cluster.kubeconfig().display().to_string();
    for (name, is_v2beta1) in [("of-v1", false), ("of-v2beta1", true)] {
        let job = format!("mpijob/{name}");
        let explain = [
            "explain",
            "--cluster",
            &job,
            "--namespace",
            namespace,
            "--kubeconfig",
            &config,
        ];
        let text = run(&explain).stdout;
        assert_eq!(text.contains("by the rules of v2beta1"), is_v2beta1, "{text}");
        assert!(text.contains(name), "{text}");
    }
}

#[tokio::test]
async fn without_the_right_on_secrets_only_jobs_of_v2beta1_wait() {
    let cluster = ControlPlane::start_at_once(Options::default()).await;
    let namespace = cluster.namespace("no-secrets").await;
    let account = ["--namespace", &*namespace, "create", "serviceaccount", "operator"];
    cluster.kubectl(&account).await.success();
    let rbac = [
        "rbac",
        "--namespace",
        &*namespace,
        "--service-account",
        "operator",
        "--kind",
        "MPIJob",
    ];
    let printed = run(&rbac);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let apply = ["apply", "--server-side", "-f", "-"];
    let (of_secrets, others): (Vec<Value>, Vec<Value>) =
        objects(&printed.stdout).into_iter().partition(|object| {
            object["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.ends_with("-secrets"))
        });
    assert_eq!(of_secrets.len(), 2, "a role and its binding");
    for object in others {
        cluster
            .kubectl_with_input(&apply, &object.to_string())
            .await
            .success();
    }
    let kubeconfig = cluster
        .kubeconfig_once_allowed(&namespace, "operator", "create", "pods")
        .await;
    let stage = Stage::within(&cluster, &namespace, &kubeconfig).await;
    let operator = stage.operator_with(&["--enable-scheme=MPIJob"]);
    for version in ["v1", "v2beta1"] {
        cluster
            .create(&namespace, &mpi_job(version, &format!("of-{version}")))
            .await;
    }
    stage.until_pods("of-v1", 3).await;
    let v1 = stage.mpi_jobs("v1");
    until(&v1, "of-v2beta1", "waitingReason", "FailedCreateSecret").await;
    operator
        .0
        .wait_for_line("jobs that have such objects will wait")
        .await;
    for object in of_secrets {
        cluster
            .kubectl_with_input(&apply, &object.to_string())
            .await
            .success();
    }
    stage.until_pods("of-v2beta1", 3).await;
    operator.expect_well();
}

/// The API server allows no definition that lacks a version in which objects are stored.
#[tokio::test]
async fn the_definition_replaces_that_of_either_operator() {
    for version in ["v1", "v2beta1"] {
        let cluster = ControlPlane::start_at_once(Options::default()).await;
        let ours = std::fs::read_to_string(repository().join("crds/mpi/kubeflow.org_mpijobs.yaml")).unwrap();
        let mut theirs = objects(&ours).remove(0);
        let versions = theirs["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|of| of["name"] == version);
        versions[0]["storage"] = json!(true);
        let folder = cluster.directory().join("theirs");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("mpijobs.json"), theirs.to_string()).unwrap();
        cluster.apply_definitions(&folder).await;
        let namespace = cluster.namespace("replaced").await;
        cluster.create(&namespace, &mpi_job(version, "before")).await;
        let apply = ["apply", "--server-side", "--force-conflicts", "-k", "crds/mpi"];
        cluster.kubectl(&apply).await.success();
        let replicas = "jsonpath={.spec.mpiReplicaSpecs.Worker.replicas}";
        let get = [
            "get",
            "mpijob",
            "before",
            "--namespace",
            &*namespace,
            "-o",
            replicas,
        ];
        assert_eq!(cluster.kubectl(&get).await.success(), "2");
    }
}
