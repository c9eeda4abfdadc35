//! A namespace with simulated nodes, an operator, and jobs.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use training_job_testbed::cluster::{ControlPlane, Kubelet, Nodes, wait, wait_for_all};
use training_operator_testing::operator::Operator;

use crate::history::History;
use crate::jobs::{Kind, MPI};

/// The treatment of the operator during a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operators {
    /// The operator keeps running.
    Stay,
    /// The operator is killed and restarted at each turn of the scenario.
    AreKilled,
}

pub(crate) struct Stage<'a> {
    pub(crate) plane: &'a ControlPlane,
    pub(crate) namespace: String,
    pub(crate) kind: Kind,
    pub(crate) kubelet: Kubelet,
    pub(crate) nodes: Nodes,
    pub(crate) history: History,
    flags: Vec<String>,
    operators: Operators,
    operator: Option<Operator>,
}

impl<'a> Stage<'a> {
    /// Creates a stage in an existing namespace, with jobs of this kind and an operator with these flags.
    pub(crate) async fn new(
        plane: &'a ControlPlane,
        namespace: String,
        (kind, operators): (Kind, Operators),
        history: History,
        flags: &[&str],
    ) -> Self {
        let mut all = vec![format!("--namespace={namespace}")];
        if kind.name == MPI.name {
            // The manifests do not enable this kind.
            all.push(format!("--enable-scheme={}", kind.name));
        }
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let mut stage = Self {
            kubelet: plane.kubelet(&namespace).await,
            nodes: plane.nodes_behind_scheduler(&namespace).await,
            history,
            operator: None,
            flags: all,
            plane,
            namespace,
            kind,
            operators,
        };
        stage.start_operator();
        stage
    }

    fn start_operator(&mut self) {
        let flags: Vec<_> = self.flags.iter().map(String::as_str).collect();
        let operator = Operator::start(self.plane, &self.plane.kubeconfig(), &flags);
        self.operator = Some(operator);
    }

    /// Marks a point of the scenario at which the operator may be killed.
    pub(crate) fn turn(&mut self) {
        if self.operators == Operators::AreKilled {
            // The old operator must end before the next one starts.
            self.operator = None;
            self.start_operator();
        }
    }

    pub(crate) fn operator(&self) -> &Operator {
        self.operator.as_ref().unwrap()
    }

    /// Checks that the operator runs and has not panicked.
    pub(crate) fn end(&self) {
        self.operator().expect_well();
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.plane.client(), &self.namespace, &resource)
    }

    pub(crate) fn jobs(&self) -> Api<DynamicObject> {
        self.api("kubeflow.org", self.kind.version, self.kind.name)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.plane.client(), &self.namespace)
    }

    pub(crate) async fn create(&self, job: &Value) {
        let job: DynamicObject = serde_json::from_value(job.clone()).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    /// Changes a job and returns its generation.
    pub(crate) async fn edit(&self, name: &str, patch: Value) -> i64 {
        let patch = Patch::Merge(patch);
        let job = self.jobs().patch(name, &PatchParams::default(), &patch).await;
        job.unwrap().metadata.generation.unwrap()
    }

    pub(crate) async fn until(
        &self,
        name: &str,
        mut look: impl FnMut(&DynamicObject) -> bool,
    ) -> DynamicObject {
        let found = wait(self.jobs(), name, |job: Option<&DynamicObject>| {
            job.is_some_and(&mut look)
        });
        found.await.unwrap()
    }

    /// Waits until a condition of a job is true.
    pub(crate) async fn condition(&self, name: &str, type_: &str) -> DynamicObject {
        self.until(name, |job| is(job, type_, "True")).await
    }

    /// Waits until a job has exactly this number of pods, all running, and the condition Running.
    pub(crate) async fn runs(&self, job: &str, pods: usize) -> Vec<Pod> {
        let look = |all: &[Pod]| all.len() == pods && all.iter().all(runs);
        let found = wait_for_all(self.pods(), &of(job), look).await;
        self.condition(job, "Running").await;
        found
    }

    /// Waits until this number of pods of a single job run, and returns the job.
    pub(crate) async fn one_runs(&self, pods: usize) -> String {
        let running = |all: &[Pod]| {
            let jobs: BTreeSet<_> = all
                .iter()
                .map(|pod| &pod.labels()["training.kubeflow.org/job-name"])
                .collect();
            let count = |job: &str| all.iter().filter(|pod| of_job(pod, job) && runs(pod)).count();
            jobs.into_iter().find(|job| count(job) == pods).cloned()
        };
        let all = wait_for_all(self.pods(), "", |all| running(all).is_some()).await;
        running(&all).unwrap()
    }

    /// Waits until another pod has the name of this one.
    pub(crate) async fn replaced(&self, before: &[Pod], name: &str) {
        let old = before.iter().find(|pod| pod.name_any() == name).unwrap().uid();
        wait(self.pods(), name, |pod: Option<&Pod>| {
            pod.is_some_and(|pod| pod.uid() != old)
        })
        .await;
    }

    /// Waits until a job has exactly this number of pods, in any state.
    pub(crate) async fn has(&self, job: &str, pods: usize) {
        wait_for_all(self.pods(), &of(job), |all| all.len() == pods).await;
    }

    /// Deletes a pod with its own grace period.
    pub(crate) async fn delete_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Makes the remaining pods of a job succeed, so that the job succeeds.
    pub(crate) async fn finishes(&self, job: &str, pods: usize) {
        for pod in self.runs(job, pods).await {
            self.kubelet.succeeds(&pod.name_any()).await;
        }
        self.condition(job, "Succeeded").await;
    }
}

pub(crate) fn of(job: &str) -> String {
    format!("training.kubeflow.org/job-name={job}")
}

fn of_job(pod: &Pod, job: &str) -> bool {
    pod.labels()
        .get("training.kubeflow.org/job-name")
        .map(String::as_str)
        == Some(job)
}

/// Returns true if a pod runs and is not being deleted.
pub(crate) fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && phase == Some("Running")
}

/// Returns the name of a worker's pod.
pub(crate) fn a_worker(pods: &[Pod]) -> String {
    let mut names = pods.iter().map(ResourceExt::name_any);
    names.find(|name| name.contains("-worker-")).unwrap()
}

/// Returns true if a condition of an object has this status.
pub(crate) fn is(object: &DynamicObject, type_: &str, status: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    let mut all = conditions.into_iter().flatten();
    all.any(|condition| condition["type"] == type_ && condition["status"] == status)
}
