//! Manifests of the stand-alone mxnet-operator, in all its versions.

use std::fs;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use kube::core::DynamicObject;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::program::root;

use super::operator;

/// The manifests are applied as users apply them, read back under `v1` and under their own version, and run.
#[tokio::test]
async fn its_manifests_apply_as_they_are_and_run() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("standalone").await;
    let running = operator::start(cluster, &namespace);
    let folder = root().join("operator/tests/cluster/admission/standalone");
    let apply = ["apply", "--namespace", &namespace, "-f", folder.to_str().unwrap()];
    let applied = cluster.kubectl(&apply).await;
    let deprecated = |line: &str| line.contains("deprecated") || line.trim().is_empty();
    assert!(applied.stderr.lines().all(deprecated), "{}", applied.stderr);
    applied.success();

    let jobs = operator::jobs(cluster, &namespace, "MXJob");
    let mut found = Vec::new();
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let verdict = operator::verdict(&jobs, name).await;
        assert!(verdict.is_empty(), "{name}: {verdict:#?}");
        let own: serde_json::Value = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let stored = jobs.get(name).await.unwrap();
        for (field, value) in own["spec"].as_object().unwrap() {
            if field != "mxReplicaSpecs" {
                assert_eq!(&stored.data["spec"][field], value, "{name}: {field}");
            }
        }
        for (role, spec) in own["spec"]["mxReplicaSpecs"].as_object().unwrap() {
            let stored = &stored.data["spec"]["mxReplicaSpecs"][role];
            assert_eq!(stored["label"], spec["label"], "{name}: {role}");
            assert_eq!(stored["replicas"], spec["replicas"], "{name}: {role}");
            let container = "/template/spec/containers/0/image";
            assert_eq!(
                stored.pointer(container),
                spec.pointer(container),
                "{name}: {role}"
            );
        }
        // An unchanged manifest is not written again.
        let file = file.to_str().unwrap();
        let again = ["apply", "--namespace", &namespace, "-f", file];
        cluster.kubectl(&again).await.success();
        let generation = |job: &DynamicObject| job.metadata.generation;
        assert_eq!(
            generation(&jobs.get(name).await.unwrap()),
            generation(&stored),
            "{name}"
        );
        let label = format!("training.kubeflow.org/job-name={name}");
        let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
        let mut names: Vec<_> = pods
            .list(&ListParams::default().labels(&label))
            .await
            .unwrap()
            .iter()
            .map(|pod| {
                let spec = pod.spec.as_ref().unwrap();
                let scheduler = spec.scheduler_name.as_deref().unwrap_or_default();
                format!("{} by {scheduler}", pod.name_any())
            })
            .collect();
        names.sort();
        found.push(names.join("\n"));
    }
    running.abort();
    insta::assert_snapshot!(found.join("\n"));
}
