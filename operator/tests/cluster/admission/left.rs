//! The definitions of `manifests/takeover` over those that older operators left, and the jobs that were there.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use training_job_testbed::cluster::{ControlPlane, Options, wait};
use training_operator_testing::program::root;

use super::{api, operator};

const KEY: &str = "apiextensions.k8s.io/customresourcedefinitions/mxjobs.kubeflow.org";

/// The stand-alone operator's definition as an API server of its time stored it: written by way of the definitions' first
/// version, which kept unknown fields, and of types no word.
fn left(stored: &str) -> Value {
    let one = json!({"properties": {"replicas": {"type": "integer", "minimum": 1, "maximum": 1}}});
    let some = json!({"properties": {"replicas": {"type": "integer", "minimum": 1}}});
    let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": {"mxReplicaSpecs": {"properties": {
        "Scheduler": one, "Server": some, "Worker": some, "TunerTracker": one, "TunerServer": some, "Tuner": one,
    }}}}}}});
    let version = |name: &str| {
        let mut version = json!({"name": name, "served": true, "storage": name == stored, "schema": schema});
        if name == "v1" {
            version["subresources"] = json!({"status": {}});
        }
        version
    };
    let names = json!({"kind": "MXJob", "listKind": "MXJobList", "plural": "mxjobs", "singular": "mxjob"});
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2020-06-01T00:00:00Z"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "mxjobs.kubeflow.org", "uid": "8f3c1e0a-0000-4000-8000-000000000001", "generation": 1,
            "creationTimestamp": "2020-06-01T00:00:00Z",
        },
        "spec": {
            "group": "kubeflow.org", "scope": "Namespaced", "names": names, "preserveUnknownFields": true,
            "conversion": {"strategy": "None"}, "versions": [version("v1"), version("v1beta1")],
        },
        "status": {
            "acceptedNames": names, "storedVersions": [stored],
            "conditions": [condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")],
        },
    })
}

/// The same from a server so old that it knew no other version of definitions. A schema was then one for all versions.
fn left_long_ago(stored: &str) -> Value {
    let mut definition = left(stored);
    definition["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
    let spec = &mut definition["spec"];
    let versions = spec["versions"].as_array_mut().unwrap();
    let schemas = versions.iter_mut().map(|version| {
        let version = version.as_object_mut().unwrap();
        version.remove("subresources");
        version.remove("schema").unwrap()
    });
    let schema = schemas.last();
    spec["validation"] = schema.unwrap();
    spec["version"] = "v1".into();
    spec["subresources"] = json!({"status": {}});
    definition
}

fn job(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("kubeflow.org/{version}"), "kind": "MXJob", "metadata": {"name": name},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {
            "Worker": {"replicas": 1, "template": {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}},
        }},
    })
}

/// Returns a job as that operator stored it: its defaults, and the status under its own name, by a write of the whole
/// object.
fn old_job(version: &str, name: &str) -> Value {
    let mut job = job(version, name);
    job["spec"]["cleanPodPolicy"] = "Running".into();
    job["spec"]["RunPolicy"] = json!({});
    job["status"] = json!({
        "conditions": [{"type": "Running", "status": "True", "reason": "MXJobRunning", "message": "m"}],
        "mxReplicaStatuses": {"Worker": {"active": 3, "failed": 1}}, "startTime": "2020-06-01T00:00:00Z",
    });
    job
}

async fn crds_apply_over(definition: Value, stored: &str, flags: &[&str]) {
    let cluster = ControlPlane::start(Options::default()).await;
    cluster.store(KEY, &definition).await;
    cluster.served("mxjobs.kubeflow.org").await;
    let namespace = cluster.namespace("left").await;
    let told = api::create(
        &cluster,
        &namespace,
        &old_job(stored, "old").to_string(),
        &["--validate=false"],
    )
    .await;
    assert_eq!(told, [""; 0]);
    if stored == "v1" {
        // Its status is written by itself.
        let status = json!({"status": old_job(stored, "old")["status"]}).to_string();
        let patch = [
            "patch",
            "mxjob",
            "old",
            "--subresource=status",
            "--type=merge",
            "-p",
            &status,
        ];
        let patch = [&patch[..], &["--namespace", &namespace]].concat();
        cluster.kubectl(&patch).await.success();
    }

    let folder = root().join("manifests/takeover");
    let apply = [&["apply", "-k", folder.to_str().unwrap()], flags].concat();
    cluster.kubectl(&apply).await.success();
    cluster.served("mxjobs.kubeflow.org").await;
    // Once more: as an upgrade finds it, and with nothing to change.
    let again = cluster.kubectl(&apply).await.success();
    assert!(!again.contains("created"), "{again}");

    let jobs = |version: &str| -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("kubeflow.org", version, "MXJob");
        let resource = ApiResource::from_gvk_with_plural(&kind, "mxjobs");
        Api::namespaced_with(cluster.client(), &namespace, &resource)
    };
    for version in ["v1", "v1beta1", "v1alpha2"] {
        let job = job(version, &format!("new-{version}")).to_string();
        assert_eq!(
            api::create(&cluster, &namespace, &job, &[]).await,
            [""; 0],
            "{version}"
        );
    }
    let all = jobs("v1").list(&ListParams::default()).await.unwrap();
    let read_as: Vec<_> = all
        .iter()
        .map(|job| {
            let name = job.metadata.name.as_deref().unwrap();
            (name, job.data["spec"]["compatibility"].as_str().unwrap_or("-"))
        })
        .collect();
    let of_old = if stored == "v1" { "-" } else { "MXNetOperator" };
    assert_eq!(
        read_as,
        [
            ("new-v1", "-"),
            ("new-v1alpha2", "MXNetOperator"),
            ("new-v1beta1", "MXNetOperator"),
            ("old", of_old),
        ]
    );
    let old = jobs("v1").get("old").await.unwrap();
    assert_eq!(old.data["spec"]["cleanPodPolicy"], "Running");
    // The operator goes on with it, and what it writes under the old name is what it writes under the new one.
    let running = operator::start(&cluster, &namespace);
    cluster
        .wait::<Pod>(&namespace, "old-worker-0", |pod| pod.is_some())
        .await;
    cluster.kubelet(&namespace).await.runs("old-worker-0").await;
    let runs = json!({"Worker": {"active": 1}});
    let counts = |job: Option<&DynamicObject>| {
        job.is_some_and(|job| job.data["status"]["replicaStatuses"]["Worker"]["active"] == 1)
    };
    let now = wait(jobs("v1"), "old", counts).await.unwrap();
    running.abort();
    assert_eq!(now.data["status"]["mxReplicaStatuses"], runs, "{:#}", now.data);
    assert_eq!(now.data["status"]["startTime"], "2020-06-01T00:00:00Z");
    // Now it is pruned.
    assert_eq!(old.data["spec"].get("RunPolicy"), None, "{:#}", old.data);
}

#[tokio::test]
async fn client_side_apply_over_a_job_stored_as_v1beta1() {
    crds_apply_over(left("v1beta1"), "v1beta1", &[]).await;
}

#[tokio::test]
async fn server_side_apply_over_a_job_stored_as_v1() {
    crds_apply_over(left("v1"), "v1", &["--server-side", "--force-conflicts"]).await;
}

#[tokio::test]
async fn client_side_apply_over_a_job_of_an_old_operator() {
    crds_apply_over(left_long_ago("v1"), "v1", &[]).await;
}
