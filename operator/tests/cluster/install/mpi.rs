//! MPIJobs that need every permission of the component mpi.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::rbac::v1::Role;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use training_job::TrainingJob;
use training_job::api::ConditionType;
use training_job_mpi::MPIJob;
use training_job_testbed::cluster::{ControlPlane, Kubelet, wait};

use super::life::{create, create_adopted};

/// A job that vanishes, one with objects of another operator, and one that changes while it runs.
pub(crate) const PLAIN: &str = "mpi-plain";
pub(crate) const ADOPTED: &str = "mpi-adopted";
pub(crate) const SCALED: &str = "mpi-scaled";

fn job(name: &str, workers: u32) -> Value {
    let role = |replicas: u32| {
        let containers = json!([{"name": "mpi", "image": "none"}]);
        json!({"replicas": replicas, "restartPolicy": "Never", "template": {"spec": {"containers": containers}}})
    };
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 1},
            "mpiReplicaSpecs": {"Launcher": role(1), "Worker": role(workers)},
        },
    })
}

/// Creates the first two jobs. The second job also owns objects that it does not need.
pub(crate) async fn create_jobs(cluster: &ControlPlane, namespace: &str) {
    create(cluster, namespace, &[job(PLAIN, 2)]).await;
    create_adopted::<MPIJob>(cluster, namespace, job(ADOPTED, 1), |objects| {
        for mut object in objects.clone() {
            let kind = object["kind"].as_str().unwrap_or_default();
            if ["ServiceAccount", "Role", "RoleBinding"].contains(&kind) {
                object["metadata"]["name"] = json!("of-no-use");
                objects.push(object);
            }
        }
    })
    .await;
}

struct Scaled<'a> {
    cluster: &'a ControlPlane,
    namespace: &'a str,
    kubelet: Kubelet,
}

impl Scaled<'_> {
    async fn runs(&self, replica: &str) {
        let pod = format!("{SCALED}-{replica}");
        let is_new = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none());
        self.cluster.wait::<Pod>(self.namespace, &pod, is_new).await;
        self.kubelet.runs(&pod).await;
    }

    async fn patch(&self, resource: &str, name: &str, patch: Value) {
        let patch = patch.to_string();
        let arguments = ["patch", resource, name, "--type=merge", "--patch", &patch];
        let all = [&["--namespace", self.namespace], &arguments[..]].concat();
        self.cluster.kubectl(&all).await.success();
    }

    /// Waits until the launcher may start processes in this worker.
    async fn is_granted(&self, worker: &str) {
        let names = |role: &Role| -> Vec<String> {
            let rules = role.rules.iter().flatten();
            rules
                .flat_map(|rule| rule.resource_names.clone())
                .flatten()
                .collect()
        };
        let worker = format!("{SCALED}-{worker}");
        let grants = |role: Option<&Role>| role.is_some_and(|role| names(role).contains(&worker));
        let role = format!("{SCALED}-launcher");
        self.cluster.wait::<Role>(self.namespace, &role, grants).await;
    }

    async fn is(&self, condition: ConditionType) {
        let holds = |job: Option<&MPIJob>| {
            job.and_then(TrainingJob::status)
                .is_some_and(|status| status.is(condition))
        };
        self.cluster.wait::<MPIJob>(self.namespace, SCALED, holds).await;
    }
}

/// Creates the third job, and changes it until it is gone.
pub(crate) async fn change(cluster: &ControlPlane, namespace: &str) {
    let scaled = Scaled {
        cluster,
        namespace,
        kubelet: cluster.kubelet(namespace).await,
    };
    create(cluster, namespace, &[job(SCALED, 1)]).await;
    scaled.runs("worker-0").await;
    scaled.runs("launcher").await;
    scaled.is(ConditionType::Running).await;

    let two = json!({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}});
    scaled.patch("mpijobs.kubeflow.org", SCALED, two).await;
    scaled.is_granted("worker-1").await;
    let role = format!("{SCALED}-launcher");
    scaled.patch("role", &role, json!({"rules": []})).await;
    scaled.is_granted("worker-1").await;

    let files: Api<ConfigMap> = Api::namespaced(cluster.client(), namespace);
    let name = format!("{SCALED}-config");
    let old = files.get(&name).await.unwrap().uid();
    files.delete(&name, &Default::default()).await.unwrap();
    let is_new = |found: Option<&ConfigMap>| found.is_some_and(|found| found.uid() != old);
    wait(files, &name, is_new).await;

    let suspend = |suspend: bool| json!({"spec": {"runPolicy": {"suspend": suspend}}});
    scaled.patch("mpijobs.kubeflow.org", SCALED, suspend(true)).await;
    scaled.is(ConditionType::Suspended).await;
    let launcher = format!("{SCALED}-launcher");
    cluster
        .wait::<Pod>(namespace, &launcher, |pod| pod.is_none())
        .await;
    scaled.patch("mpijobs.kubeflow.org", SCALED, suspend(false)).await;
    for replica in ["worker-0", "worker-1", "launcher"] {
        scaled.runs(replica).await;
    }
    scaled.kubelet.succeeds(&launcher).await;
    cluster
        .wait::<MPIJob>(namespace, SCALED, |job| job.is_none())
        .await;
}
