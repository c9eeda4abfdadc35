//! A namespace with an operator, and kubelets that the test controls.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use training_job_testbed::cluster::{Background, ControlPlane, Kubelet, Output, wait_for_all};
use training_operator_testing::operator::{EVERY_KIND, start};

pub(crate) struct Stage {
    pub(crate) cluster: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) kubelet: Kubelet,
    pub(crate) operator: Background,
}

impl Stage {
    /// Creates a stage in a cluster that serves the kinds of a default installation.
    pub(crate) async fn new(name: &str) -> Self {
        Self::of(ControlPlane::of_default_kinds().await, name, &[]).await
    }

    /// Creates a stage in a cluster that serves the optional kinds as well.
    pub(crate) async fn with_all_kinds(name: &str) -> Self {
        let cluster = ControlPlane::shared().await;
        cluster.install_crds().await;
        Self::of(cluster, name, &[EVERY_KIND]).await
    }

    async fn of(cluster: &'static ControlPlane, name: &str, flags: &[&str]) -> Self {
        let namespace = cluster.namespace(name).await;
        let flags = [&["--namespace", &namespace], flags].concat();
        let operator = start(cluster, &flags).await;
        Self {
            kubelet: cluster.kubelet(&namespace).await,
            cluster,
            namespace,
            operator,
        }
    }

    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Output {
        let arguments = [arguments, &["--namespace", &self.namespace]].concat();
        self.cluster.kubectl(&arguments).await
    }

    /// Runs kubectl, which must succeed.
    pub(crate) async fn run(&self, arguments: &[&str]) -> String {
        self.kubectl(arguments).await.success()
    }

    /// Waits for this number of pods of a job with this attempt, and returns their names.
    pub(crate) async fn until_attempt(&self, job: &str, count: usize, attempt: &str) -> Vec<String> {
        let of = |pod: &Pod| {
            let attempts = pod.annotations().get("training.kubeflow.org/restart-attempt");
            attempts.map_or("0", String::as_str) == attempt && pod.metadata.deletion_timestamp.is_none()
        };
        self.until_pods(job, |all| all.len() == count && all.iter().all(of))
            .await
    }

    /// Waits for pods of a job, and returns their names.
    pub(crate) async fn until_pods(&self, job: &str, condition: impl FnMut(&[Pod]) -> bool) -> Vec<String> {
        let api: Api<Pod> = Api::namespaced(self.cluster.client(), &self.namespace);
        let label = format!("training.kubeflow.org/job-name={job}");
        let pods = wait_for_all(api, &label, condition).await;
        pods.iter().map(ResourceExt::name_any).collect()
    }

    /// Waits for this number of pods of a job with this attempt, and lets them run.
    pub(crate) async fn all_run(&self, job: &str, count: usize, attempt: &str) -> Vec<String> {
        let names = self.until_attempt(job, count, attempt).await;
        for name in &names {
            self.kubelet.runs(name).await;
        }
        names
    }

    /// Waits until a job has no pods.
    pub(crate) async fn none_left(&self, job: &str) {
        let api: Api<Pod> = Api::namespaced(self.cluster.client(), &self.namespace);
        let label = format!("training.kubeflow.org/job-name={job}");
        wait_for_all(api, &label, <[Pod]>::is_empty).await;
    }
}
