//! A namespace with a queue for one job at a time, nodes that only its jobs may use, and an operator.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job_testing::cluster::{Kubelet, Nodes, wait, wait_for_all};

use super::process::Queues;
use crate::built;
use crate::history::History;
use crate::jobs::{self, Kind, PODS};
use crate::node;
use crate::rig::operator::Operator;

pub(crate) const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const PRIORITY: &str = "kueue.x-k8s.io/priority-class";

/// What is done to the operator while a story goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operators {
    /// Nothing.
    Stay,
    /// It is killed, and another one started, at each turn of the story.
    AreKilled,
}

pub(crate) struct Stage<'a> {
    queues: &'a Queues,
    pub(crate) namespace: String,
    pub(crate) kind: Kind,
    pub(crate) kubelet: Kubelet,
    pub(crate) nodes: Nodes,
    pub(crate) history: History,
    operators: Operators,
    operator: Option<Operator>,
}

impl<'a> Stage<'a> {
    /// Jobs are of this kind unless a test says otherwise. The quota is for one of them.
    pub(crate) async fn new(queues: &'a Queues, name: &str, kind: Kind, operators: Operators) -> Self {
        let plane = &queues.plane;
        let namespace = plane.namespace(name).await;
        let pool = json!({"pool": namespace});
        let taint = json!({"key": "pool", "value": namespace, "effect": "NoSchedule"});
        node::create(plane, &namespace, 64, pool.clone(), json!([taint])).await;
        built::apply(plane, &queue(&namespace, &pool)).await;
        let mut stage = Self {
            kubelet: plane.kubelet(&namespace).await,
            nodes: plane.nodes_behind_scheduler(&namespace).await,
            history: History::of(Api::namespaced(plane.client(), &namespace)).await,
            operator: None,
            queues,
            namespace,
            kind,
            operators,
        };
        stage.start_operator();
        stage
    }

    fn start_operator(&mut self) {
        let flag = format!("--namespace={}", self.namespace);
        let plane = &self.queues.plane;
        self.operator = Some(Operator::start(plane, &plane.kubeconfig(), &[&flag]));
    }

    /// The story has come to where an operator may be killed.
    pub(crate) fn turn(&mut self) {
        if self.operators == Operators::AreKilled {
            // Before the next one starts.
            self.operator = None;
            self.start_operator();
        }
    }

    /// A job of that name, which goes to the queue.
    pub(crate) fn job(&self, name: &str) -> Value {
        jobs::labelled(self.kind.job(name), QUEUE, "queue")
    }

    /// A job of that name that comes before all of lower priority.
    pub(crate) fn urgent(&self, name: &str) -> Value {
        let class = format!("{}-high", self.namespace);
        jobs::labelled(self.job(name), PRIORITY, &class)
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.queues.plane.client(), &self.namespace, &resource)
    }

    pub(crate) fn jobs(&self) -> Api<DynamicObject> {
        self.api("kubeflow.org", "v1", self.kind.name)
    }

    pub(crate) fn workloads(&self) -> Api<DynamicObject> {
        self.api("kueue.x-k8s.io", "v1beta1", "Workload")
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.queues.plane.client(), &self.namespace)
    }

    pub(crate) async fn create(&self, job: &Value) {
        let job: DynamicObject = serde_json::from_value(job.clone()).unwrap();
        self.jobs().create(&PostParams::default(), &job).await.unwrap();
    }

    /// Changes a job, and returns its generation.
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

    /// Awaits that a condition of a job is true.
    pub(crate) async fn condition(&self, name: &str, type_: &str) -> DynamicObject {
        self.until(name, |job| is(job, type_, "True")).await
    }

    /// Awaits the job's Workload when it is as wanted.
    pub(crate) async fn workload(&self, job: &str, look: impl Fn(&DynamicObject) -> bool) -> DynamicObject {
        let wanted = |workload: &DynamicObject| {
            let owners = workload.metadata.owner_references.iter().flatten();
            workload.metadata.deletion_timestamp.is_none()
                && owners.into_iter().any(|o| o.name == job)
                && look(workload)
        };
        let all = wait_for_all(self.workloads(), "", |all| all.iter().any(wanted)).await;
        all.into_iter().find(wanted).unwrap()
    }

    /// Awaits that Kueue has found no room for a job, and sees that the job is suspended.
    pub(crate) async fn waits(&self, job: &str) {
        self.workload(job, |workload| is(workload, "QuotaReserved", "False"))
            .await;
        self.condition(job, "Suspended").await;
    }

    pub(crate) async fn delete_workload(&self, job: &str) -> String {
        let metadata = self.workload(job, |_| true).await.metadata;
        let name = metadata.name.unwrap();
        let deleted = self.workloads().delete(&name, &DeleteParams::default()).await;
        deleted.unwrap();
        metadata.uid.unwrap()
    }

    /// Awaits that a job has just so many pods, which run, and that it says so. All are on the queue's node, where none may be that
    /// has not been given the queue's tolerations.
    pub(crate) async fn runs(&self, job: &str, pods: usize) -> Vec<Pod> {
        let runs = |pod: &Pod| pod.metadata.deletion_timestamp.is_none() && phase(pod) == Some("Running");
        let look = |all: &[Pod]| all.len() == pods && all.iter().all(runs);
        let found = wait_for_all(self.pods(), &of(job), look).await;
        for pod in &found {
            let spec = pod.spec.as_ref().unwrap();
            assert_eq!(spec.node_name.as_ref(), Some(&self.namespace), "{spec:#?}");
            let selector = spec.node_selector.as_ref().unwrap();
            assert_eq!(selector.get("pool"), Some(&self.namespace), "{spec:#?}");
        }
        self.condition(job, "Running").await;
        found
    }

    /// Awaits that another pod has the name of this one.
    pub(crate) async fn replaced(&self, before: &[Pod], name: &str) {
        let old = before.iter().find(|pod| pod.name_any() == name).unwrap().uid();
        wait(self.pods(), name, |pod| pod.is_some_and(|pod| pod.uid() != old)).await;
    }

    /// Awaits that a job has just so many pods, in whatever state.
    pub(crate) async fn has(&self, job: &str, pods: usize) {
        wait_for_all(self.pods(), &of(job), |all| all.len() == pods).await;
    }

    /// Has all pods of a job succeed, so that it does.
    pub(crate) async fn finishes(&self, job: &str, pods: usize) {
        for pod in self.runs(job, pods).await {
            self.kubelet.succeeds(&pod.metadata.name.unwrap()).await;
        }
        self.condition(job, "Succeeded").await;
    }

    /// A whole life of a job, which is in nobody's way.
    pub(crate) async fn runs_and_finishes(&self, job: &str) {
        self.runs(job, PODS).await;
        self.finishes(job, PODS).await;
    }

    /// The operator runs, and nothing in it has panicked.
    pub(crate) fn end(&self) {
        self.operator.as_ref().unwrap().expect_well();
    }
}

/// The queue, for pods of the nodes of a pool.
fn queue(namespace: &str, pool: &Value) -> [Value; 4] {
    let flavors = json!([{"name": namespace, "resources": [{"name": "cpu", "nominalQuota": PODS}]}]);
    let of_kueue = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let flavor = json!({
        "nodeLabels": pool,
        "tolerations": [{"key": "pool", "operator": "Equal", "value": namespace, "effect": "NoSchedule"}],
    });
    let cluster_queue = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
    });
    let mut local = of_kueue("LocalQueue", "queue", json!({"clusterQueue": namespace}));
    local["metadata"]["namespace"] = namespace.into();
    [
        of_kueue("ResourceFlavor", namespace, flavor),
        of_kueue("ClusterQueue", namespace, cluster_queue),
        local,
        json!({
            "apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass",
            "metadata": {"name": format!("{namespace}-high")}, "value": 1000,
        }),
    ]
}

fn of(job: &str) -> String {
    format!("training.kubeflow.org/job-name={job}")
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

/// Whether a condition of an object has this status.
pub(crate) fn is(object: &DynamicObject, type_: &str, status: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    let mut all = conditions.into_iter().flatten();
    all.any(|condition| condition["type"] == type_ && condition["status"] == status)
}

/// Whether a job is suspended by its spec.
pub(crate) fn is_suspended(job: &DynamicObject) -> bool {
    job.data["spec"]["runPolicy"]["suspend"] == true
}
