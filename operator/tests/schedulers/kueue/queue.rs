//! A namespace with a queue for one job at a time, and nodes that only its jobs may use.

use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use training_job_testbed::cluster::wait_for_all;

use super::process::Queues;
use crate::built;
use crate::gangs::process::Scheduler;
use crate::history::History;
use crate::jobs::{self, Kind, PODS};
use crate::node;
use crate::stage::{Operators, Stage, is};

pub(crate) const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const PRIORITY: &str = "kueue.x-k8s.io/priority-class";

impl<'a> Stage<'a> {
    /// Creates a stage whose quota suffices for one job of this kind.
    pub(crate) async fn with_queue(queues: &'a Queues, name: &str, actors: (Kind, Operators)) -> Self {
        Self::with_quota(queues, name, actors, PODS).await
    }

    /// Creates a stage whose quota is this number of pods.
    pub(crate) async fn with_quota(
        queues: &'a Queues,
        name: &str,
        actors: (Kind, Operators),
        pods: usize,
    ) -> Self {
        let plane = &queues.plane;
        let namespace = plane.namespace(name).await;
        let pool = json!({"pool": namespace});
        let taint = json!({"key": "pool", "value": namespace, "effect": "NoSchedule"});
        node::create(plane, &namespace, 64, pool.clone(), json!([taint])).await;
        built::apply(plane, &queue(&namespace, &pool, pods)).await;
        let history = History::of(Api::namespaced(plane.client(), &namespace)).await;
        let gangs = queues.gangs.map(Scheduler::flag);
        let flags: Vec<_> = gangs.iter().map(String::as_str).collect();
        Self::new(plane, namespace, actors, history, &flags).await
    }

    /// Returns a job of this name that goes to the queue.
    pub(crate) fn job(&self, name: &str) -> Value {
        jobs::labelled(self.kind.job(name), QUEUE, "queue")
    }

    /// Returns a job of this name that precedes all jobs of lower priority.
    pub(crate) fn urgent(&self, name: &str) -> Value {
        self.hurried(self.job(name))
    }

    /// Returns the job with a priority, so that it precedes all jobs of lower priority.
    pub(crate) fn hurried(&self, job: Value) -> Value {
        jobs::labelled(job, PRIORITY, &format!("{}-high", self.namespace))
    }

    /// Returns the API for ClusterQueues. Each has the name of its namespace.
    pub(crate) fn cluster_queues(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("kueue.x-k8s.io", "v1beta2", "ClusterQueue");
        Api::all_with(self.plane.client(), &ApiResource::from_gvk(&kind))
    }

    pub(crate) fn workloads(&self) -> Api<DynamicObject> {
        self.api("kueue.x-k8s.io", "v1beta2", "Workload")
    }

    /// Waits until the job's Workload meets a condition.
    pub(crate) async fn workload(&self, job: &str, look: impl Fn(&DynamicObject) -> bool) -> DynamicObject {
        let wanted = |workload: &DynamicObject| {
            let owners = workload.metadata.owner_references.iter().flatten();
            let is_its = owners.into_iter().any(|owner| owner.name == job);
            is_its && workload.metadata.deletion_timestamp.is_none() && look(workload)
        };
        let all = wait_for_all(self.workloads(), "", |all| all.iter().any(wanted)).await;
        all.into_iter().find(wanted).unwrap()
    }

    /// Waits until Kueue has found no capacity for a job, and checks that the job is suspended.
    pub(crate) async fn waits(&self, job: &str) {
        let refused = |workload: &DynamicObject| is(workload, "QuotaReserved", "False");
        self.workload(job, refused).await;
        self.condition(job, "Suspended").await;
    }

    /// Deletes a job's Workload and returns its UID.
    pub(crate) async fn delete_workload(&self, job: &str) -> String {
        let metadata = self.workload(job, |_| true).await.metadata;
        let name = metadata.name.unwrap();
        let deleted = self.workloads().delete(&name, &DeleteParams::default()).await;
        deleted.unwrap();
        metadata.uid.unwrap()
    }

    /// Waits until a job runs. All its pods must be on the queue's node, which needs the queue's tolerations, and
    /// must have the queue's node selector.
    pub(crate) async fn runs_on_quota(&self, job: &str) {
        for pod in self.runs(job, PODS).await {
            let spec = pod.spec.as_ref().unwrap();
            assert_eq!(spec.node_name.as_ref(), Some(&self.namespace), "{spec:#?}");
            let selector = spec.node_selector.as_ref().unwrap();
            assert_eq!(selector.get("pool"), Some(&self.namespace), "{spec:#?}");
        }
    }
}

/// Returns an object of Kueue.
pub(crate) fn of_kueue(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

/// Returns the queue for pods on the nodes of a pool.
pub(super) fn queue(namespace: &str, pool: &Value, pods: usize) -> [Value; 4] {
    let flavors = json!([{"name": namespace, "resources": [{"name": "cpu", "nominalQuota": pods}]}]);
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
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
            "metadata": {"name": format!("{namespace}-high")}, "value": 1000,
        }),
    ]
}

/// Returns true if a job's spec suspends it.
pub(crate) fn is_suspended(job: &DynamicObject) -> bool {
    job.data["spec"]["runPolicy"]["suspend"] == true
}
