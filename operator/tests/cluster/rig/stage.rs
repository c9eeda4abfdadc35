//! A namespace with nodes, a proxy for its operator, and jobs.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_controller::Options;
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::{ControlPlane, Kubelet, Nodes, On, Proxy, wait_for_all};
use training_operator_testing::operator::{InProcess, Operator};

use super::jobs::{deciding, is, job};

/// Creates a namespace with the service account `operator`, which has the permissions of `manifests/` in it.
pub(crate) async fn namespace_with_account(cluster: &ControlPlane, name: &str) -> String {
    let namespace = cluster.namespace(name).await;
    let account = format!("--serviceaccount={namespace}:operator");
    for arguments in [
        &["create", "serviceaccount", "operator"][..],
        &["apply", "-f", "manifests/base/role.yaml"],
        &[
            "create",
            "rolebinding",
            "operator",
            "--role=training-operator",
            &account,
        ],
    ] {
        let arguments = [arguments, &["--namespace", &namespace]].concat();
        cluster.kubectl(&arguments).await.success();
    }
    namespace
}

/// A namespace of a control plane that belongs to one test.
pub(crate) struct Stage<'a> {
    pub(crate) cluster: &'a ControlPlane,
    pub(crate) namespace: String,
    pub(crate) proxy: Proxy,
    pub(crate) kubelet: Kubelet,
    nodes: Option<Nodes>,
}

impl Stage<'static> {
    /// Creates a stage in the control plane that all tests share.
    pub(crate) async fn new(name: &str) -> Self {
        Stage::of(ControlPlane::shared().await, name).await
    }
}

impl<'a> Stage<'a> {
    /// Creates a stage in this control plane. Its operator is the administrator.
    pub(crate) async fn of(cluster: &'a ControlPlane, name: &str) -> Self {
        let namespace = cluster.namespace(name).await;
        Self::within(cluster, &namespace, &cluster.kubeconfig()).await
    }

    /// Creates a stage in an existing namespace. The operator has the credentials of the kubeconfig.
    pub(crate) async fn within(cluster: &'a ControlPlane, namespace: &str, kubeconfig: &Path) -> Self {
        cluster.install_crds().await;
        Self {
            proxy: cluster.proxy(kubeconfig).await,
            kubelet: cluster.kubelet(namespace).await,
            nodes: Some(cluster.nodes(namespace).await),
            cluster,
            namespace: namespace.to_owned(),
        }
    }

    /// Removes the nodes. Only the test changes pods.
    pub(crate) fn without_nodes(mut self) -> Self {
        self.nodes = None;
        self
    }

    /// Starts the operator of this namespace, behind the proxy.
    pub(crate) fn operator(&self) -> Operator {
        self.operator_with(&[])
    }

    pub(crate) fn operator_with(&self, flags: &[&str]) -> Operator {
        let namespace = format!("--namespace={}", self.namespace);
        let flags = [&[&*namespace], flags].concat();
        Operator::start(self.cluster, self.proxy.kubeconfig(), &flags)
    }

    /// Starts an operator of this namespace in this process, behind the proxy.
    pub(crate) async fn operator_in_process(&self, mut options: Options) -> InProcess {
        options.namespace = Some(self.namespace.clone());
        InProcess::start(self.proxy.kubeconfig(), options).await
    }

    pub(crate) fn jobs(&self) -> Api<MXJob> {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    /// Returns the MPIJobs as clients of this version see them.
    pub(crate) fn mpi_jobs(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("kubeflow.org", version, "MPIJob");
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.cluster.client(), &self.namespace, &resource)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    pub(crate) async fn create(&self, job: Value) -> MXJob {
        let job: MXJob = serde_json::from_value(job).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap()
    }

    /// Changes any part of a job except its status.
    pub(crate) async fn edit(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.jobs()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Changes an annotation, so that the operator reconciles the job now.
    pub(crate) async fn touch(&self, name: &str, mark: &str) {
        self.edit(name, json!({"metadata": {"annotations": {"touched": mark}}}))
            .await;
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.jobs()
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    /// Waits until a condition of a job is true.
    pub(crate) async fn until(&self, name: &str, condition: ConditionType) -> MXJob {
        let found = self.until_job(name, |job| is(job, condition)).await;
        found.unwrap()
    }

    pub(crate) async fn until_job(&self, name: &str, mut look: impl FnMut(&MXJob) -> bool) -> Option<MXJob> {
        let look = |job: Option<&MXJob>| job.is_some_and(&mut look);
        self.cluster.wait(&self.namespace, name, look).await
    }

    /// Waits until all replicas of a job run, and returns its pods' UIDs by name.
    pub(crate) async fn until_all_run(&self, name: &str, replicas: u32) -> BTreeMap<String, String> {
        let wanted = i32::try_from(replicas).unwrap();
        let runs = |job: &MXJob| {
            let status = job.status.as_ref();
            is(job, ConditionType::Running) && status.map(|s| super::jobs::active(&s.job)) == Some(wanted)
        };
        self.until_job(name, runs).await;
        self.pods_of(name).await
    }

    /// Makes a job's deciding replica succeed, and waits until the job has succeeded.
    pub(crate) async fn succeed(&self, name: &str, replicas: u32) -> MXJob {
        self.kubelet.succeeds(&deciding(name, replicas)).await;
        self.until(name, ConditionType::Succeeded).await
    }

    /// Runs a job with one replica to its end. A problem of another job must not affect it.
    pub(crate) async fn good_job(&self) {
        self.create(job("good", 1)).await;
        self.until_all_run("good", 1).await;
        self.succeed("good", 1).await;
    }

    /// Returns the UIDs of a job's pods by name.
    pub(crate) async fn pods_of(&self, job: &str) -> BTreeMap<String, String> {
        let labels = format!("training.kubeflow.org/job-name={job}");
        let pods = self
            .pods()
            .list(&ListParams::default().labels(&labels))
            .await
            .unwrap();
        pods.iter()
            .map(|pod| (pod.name_any(), pod.uid().unwrap()))
            .collect()
    }

    /// Waits until a job has this number of pods.
    pub(crate) async fn until_pods(&self, job: &str, count: usize) -> Vec<Pod> {
        let labels = format!("training.kubeflow.org/job-name={job}");
        wait_for_all(self.pods(), &labels, |pods| pods.len() == count).await
    }

    /// Returns the reasons and messages of the events about an object, in any order.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let api: Api<Event> = Api::namespaced(self.cluster.client(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let events = api.list(&about).await.unwrap();
        events
            .into_iter()
            .map(|event| {
                (
                    event.reason.unwrap_or_default(),
                    event.message.unwrap_or_default(),
                )
            })
            .collect()
    }

    /// Waits for the first event about a job with this reason, and returns its message.
    pub(crate) async fn until_event(&self, job: &str, reason: &str) -> String {
        let api: Api<Event> = Api::namespaced(self.cluster.client(), &self.namespace);
        let mut message = None;
        let mut look = |events: &[Event]| {
            let mut all = events.iter();
            let found = all.find(|event| {
                event.involved_object.name.as_deref() == Some(job) && event.reason.as_deref() == Some(reason)
            });
            message = found.and_then(|event| event.message.clone());
            message.is_some()
        };
        wait_for_all(api, "", &mut look).await;
        message.unwrap()
    }

    /// Checks that no pod of these jobs was created twice, and that every deletion had a precondition on the object's
    /// identity.
    pub(crate) fn expect_no_harm(&self) {
        let mut made = BTreeMap::<(String, String), usize>::new();
        for call in self.proxy.calls() {
            let child = matches!(&*call.resource, "pods" | "services");
            if child && call.verb == "create" && call.code == Some(201) {
                *made
                    .entry((call.resource.clone(), call.name.clone()))
                    .or_default() += 1;
            }
            if matches!(call.verb, "delete" | "deletecollection") {
                let body = call.body.clone().unwrap_or_default();
                assert!(
                    body["preconditions"]["uid"].is_string(),
                    "{} {body}",
                    call.summary()
                );
            }
        }
        let twice: Vec<_> = made.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "made more than once: {twice:?}");
    }

    /// Returns the number of pods that the operator has requested to delete.
    pub(crate) fn pods_deleted(&self) -> usize {
        self.proxy.count(&On::call("delete", "pods"))
    }
}
