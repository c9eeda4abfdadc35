//! Jobs that need every permission of the components for gang schedulers.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::{ControlPlane, wait};

use super::life::create;
use super::mpi::SCALED;

/// The components, each with the API version of its PodGroup.
pub(crate) const COMPONENTS: [(&str, &str); 2] = [
    ("volcano", "scheduling.volcano.sh/v1beta1"),
    ("coscheduling", "scheduling.x-k8s.io/v1alpha1"),
];

/// Installs the definitions of the groups.
pub(crate) async fn install(cluster: &ControlPlane) {
    for (_, version) in COMPONENTS {
        let (group, _) = version.split_once('/').unwrap();
        cluster.install_pod_groups(group).await;
    }
}

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
        "spec": {"mxReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": {
            "containers": [{"name": "mxnet", "image": "none"}],
        }}}}},
    })
}

/// Creates a job whose group's name is taken, and a job that will be changed.
pub(crate) async fn create_jobs(cluster: &ControlPlane, namespace: &str, version: &str) {
    let spec = json!({"minMember": 1});
    let taken =
        json!({"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "taken"}, "spec": spec});
    create(cluster, namespace, &[taken, job("taken"), job(SCALED)]).await;
}

/// Scales the second job once it has its group, and suspends it.
pub(crate) async fn change(cluster: &ControlPlane, namespace: &str, version: &str) {
    let (group, version) = version.split_once('/').unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, "PodGroup"));
    let groups: Api<DynamicObject> = Api::namespaced_with(cluster.client(), namespace, &kind);
    let jobs: Api<MXJob> = Api::namespaced(cluster.client(), namespace);
    let patch = async |spec: Value| {
        let patch = Patch::Merge(json!({ "spec": spec }));
        jobs.patch(SCALED, &PatchParams::default(), &patch).await.unwrap();
    };
    let has = |members: i32| {
        move |group: Option<&DynamicObject>| group.is_some_and(|g| g.data["spec"]["minMember"] == members)
    };
    wait(groups.clone(), SCALED, has(1)).await;
    patch(json!({"mxReplicaSpecs": {"Worker": {"replicas": 2}}})).await;
    wait(groups.clone(), SCALED, has(2)).await;
    patch(json!({"runPolicy": {"suspend": true}})).await;
    wait(groups, SCALED, |group| group.is_none()).await;
}
