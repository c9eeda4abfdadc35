//! The jobs of a namespace, and what a test does to their pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, ListParams, ObjectList, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Object};
use serde_json::{Map, Value, json};
use training_job::api::{ConditionType, JobStatus};
use training_job_testing::cluster::{ControlPlane, Kubelet, wait, wait_for_all};

/// Keeps a pod there that is being deleted, as a kubelet does that ends its processes.
const HOLD: &str = "test.example.com/ends";

/// What is there, by kind and name: its UID. What is being deleted is not.
pub(crate) type Identities = BTreeMap<String, String>;

/// A job of any kind.
type Job = Object<Value, JobStatus>;

/// A kind of job, and of whom one is made here. Two are `worker-0` and `worker-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) container: &'static str,
    specs: &'static str,
    roles: &'static [(&'static str, u32)],
    /// The replica whose success is the job's.
    pub(crate) leader: &'static str,
    /// Whether it is so only after that of all others.
    pub(crate) all_decide: bool,
    /// Whether the Go operator replaces a replica that was killed.
    pub(crate) is_restarted: bool,
}

pub(crate) const MXNET: Kind = Kind {
    name: "MXJob",
    container: "mxnet",
    specs: "mxReplicaSpecs",
    roles: &[("Scheduler", 1), ("Server", 1), ("Worker", 2)],
    leader: "scheduler-0",
    all_decide: false,
    is_restarted: true,
};

/// Those that came after it. The Go operator v1.8.1 does not know the JAXJob.
pub(crate) const OTHERS: [Kind; 3] = [
    Kind {
        name: "PyTorchJob",
        container: "pytorch",
        specs: "pytorchReplicaSpecs",
        roles: &[("Master", 1), ("Worker", 2)],
        leader: "master-0",
        ..MXNET
    },
    Kind {
        name: "PaddleJob",
        container: "paddle",
        specs: "paddleReplicaSpecs",
        roles: &[("Worker", 3)],
        leader: "worker-2",
        all_decide: true,
        ..MXNET
    },
    Kind {
        name: "MPIJob",
        container: "mpi",
        specs: "mpiReplicaSpecs",
        roles: &[("Launcher", 1), ("Worker", 2)],
        leader: "launcher",
        is_restarted: false,
        ..MXNET
    },
];

impl Kind {
    fn pods(self) -> usize {
        self.roles.iter().map(|(_, count)| *count as usize).sum()
    }

    /// The replicas whose success is the job's.
    pub(crate) fn deciding(self) -> Vec<&'static str> {
        let others = ["worker-0", "worker-1"].into_iter();
        others.filter(|_| self.all_decide).chain([self.leader]).collect()
    }
}

pub(crate) struct Jobs {
    pub(crate) kind: Kind,
    resource: ApiResource,
    jobs: Api<Job>,
    pods: Api<Pod>,
    services: Api<Service>,
    configs: Api<ConfigMap>,
    accounts: Api<ServiceAccount>,
    permissions: Api<Role>,
    bindings: Api<RoleBinding>,
    pub(crate) kubelet: Kubelet,
}

fn label(job: &str) -> String {
    format!("training.kubeflow.org/job-name={job}")
}

fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

fn named<K: ResourceExt + Clone>(kind: &str, all: &ObjectList<K>) -> Identities {
    let named = |one: &K| (format!("{kind} {}", one.name_any()), one.uid().unwrap());
    all.iter().map(named).collect()
}

fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    phase.unwrap_or_default()
}

impl Jobs {
    pub(crate) async fn new(cluster: &ControlPlane, namespace: &str) -> Self {
        Self::of(MXNET, cluster, namespace).await
    }

    pub(crate) async fn of(kind: Kind, cluster: &ControlPlane, namespace: &str) -> Self {
        let client = cluster.client();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kubeflow.org", "v1", kind.name));
        Self {
            kind,
            jobs: Api::namespaced_with(client.clone(), namespace, &resource),
            resource,
            pods: Api::namespaced(client.clone(), namespace),
            services: Api::namespaced(client.clone(), namespace),
            configs: Api::namespaced(client.clone(), namespace),
            accounts: Api::namespaced(client.clone(), namespace),
            permissions: Api::namespaced(client.clone(), namespace),
            bindings: Api::namespaced(client, namespace),
            kubelet: cluster.kubelet(namespace).await,
        }
    }

    /// Creates a job.
    pub(crate) async fn create(&self, name: &str, clean: &str, policy: &str) {
        let role = |replicas| {
            json!({"replicas": replicas, "restartPolicy": policy, "template": {"spec": {
                "containers": [{"name": self.kind.container, "image": "example.com/train:1"}],
            }}})
        };
        let roles = self.kind.roles.iter();
        let roles: Map<_, _> = roles
            .map(|(name, count)| ((*name).to_owned(), role(count)))
            .collect();
        let mut spec = json!({"runPolicy": {"cleanPodPolicy": clean}, self.kind.specs: roles});
        if self.kind == MXNET {
            spec["jobMode"] = json!("MXTrain");
        }
        let job = Job::new(name, &self.resource, spec);
        self.jobs.create(&PostParams::default(), &job).await.unwrap();
    }

    /// Awaits that a job's pods, those that are being deleted left out, fulfil a condition.
    pub(crate) async fn pods(&self, job: &str, mut condition: impl FnMut(&[Pod]) -> bool) -> Vec<Pod> {
        let label = label(job);
        let all = wait_for_all(self.pods.clone(), &label, |all| {
            let all: Vec<_> = all.iter().filter(|p| stays(p)).cloned().collect();
            condition(&all)
        });
        all.await.into_iter().filter(stays).collect()
    }

    /// Awaits that a job has all its pods.
    pub(crate) async fn complete(&self, job: &str) -> Vec<Pod> {
        self.pods(job, |pods| pods.len() == self.kind.pods()).await
    }

    /// The same, of which one is so.
    pub(crate) async fn complete_and(&self, job: &str, is: impl Fn(&Pod) -> bool) {
        self.pods(job, |pods| pods.len() == self.kind.pods() && pods.iter().any(&is))
            .await;
    }

    /// Lets run what does not, until a job has all its pods. One may come when all others run.
    pub(crate) async fn run(&self, job: &str) {
        let waits = |pod: &Pod| phase(pod) == "Pending";
        loop {
            let is_next = |pods: &[Pod]| pods.len() == self.kind.pods() || pods.iter().any(waits);
            let pods = self.pods(job, is_next).await;
            for pod in pods.iter().filter(|pod| waits(pod)) {
                self.kubelet.runs(&pod.name_any()).await;
            }
            if pods.len() == self.kind.pods() {
                return;
            }
        }
    }

    /// Awaits that a job says this of itself.
    pub(crate) async fn is(&self, job: &str, type_: ConditionType) -> JobStatus {
        let is = |job: Option<&Job>| {
            let status = job.and_then(|job| job.status.as_ref());
            status.is_some_and(|status| status.is(type_))
        };
        let job = wait(self.jobs.clone(), job, is).await;
        job.and_then(|job| job.status).unwrap()
    }

    /// What a job says of itself.
    pub(crate) async fn status(&self, job: &str) -> JobStatus {
        self.jobs.get(job).await.unwrap().status.unwrap_or_default()
    }

    pub(crate) async fn suspend(&self, job: &str, suspend: bool) {
        let patch = Patch::Merge(json!({"spec": {"runPolicy": {"suspend": suspend}}}));
        self.jobs
            .patch(job, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Has all pods of a job stay a while when they are deleted.
    pub(crate) async fn hold(&self, job: &str) {
        for pod in self.complete(job).await {
            self.finalizers(&pod, json!([HOLD])).await;
        }
    }

    /// Ends that.
    pub(crate) async fn release(&self, job: &str) {
        let list = ListParams::default().labels(&label(job));
        for pod in self.pods.list(&list).await.unwrap() {
            if !pod.finalizers().is_empty() {
                self.finalizers(&pod, json!(null)).await;
            }
        }
    }

    async fn finalizers(&self, pod: &Pod, finalizers: Value) {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers, "uid": pod.uid()}}));
        self.pods
            .patch(&pod.name_any(), &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Awaits that a job has no pods but those that are being deleted.
    pub(crate) async fn stopped(&self, job: &str) {
        self.pods(job, <[Pod]>::is_empty).await;
    }

    /// Awaits that nothing is left of a job's pods and services.
    pub(crate) async fn gone(&self, job: &str) {
        wait_for_all(self.pods.clone(), &label(job), <[Pod]>::is_empty).await;
        wait_for_all(self.services.clone(), &label(job), <[Service]>::is_empty).await;
    }

    /// What all jobs have.
    pub(crate) async fn identities(&self) -> Identities {
        let all = ListParams::default();
        let mut found = named("service", &self.services.list(&all).await.unwrap());
        found.extend(named("config", &self.configs.list(&all).await.unwrap()));
        found.extend(named("account", &self.accounts.list(&all).await.unwrap()));
        found.extend(named("role", &self.permissions.list(&all).await.unwrap()));
        found.extend(named("binding", &self.bindings.list(&all).await.unwrap()));
        let mut pods = self.pods.list(&all).await.unwrap();
        pods.items.retain(stays);
        found.extend(named("pod", &pods));
        found
    }

    /// Awaits that the operator has looked at all jobs: it looks at a new one after those that it has found.
    pub(crate) async fn seen_by_all(&self, marker: &str) {
        self.create(marker, "None", "Never").await;
        self.pods(marker, |pods| !pods.is_empty()).await;
        self.is(marker, ConditionType::Created).await;
    }

    /// The test fails unless a job has just what it had, or, if it `may_lose`, no more.
    pub(crate) async fn expect_same(&self, job: &str, before: &Identities, may_lose: bool) {
        let of_job = |all: &Identities| -> Identities {
            let is = |name: &String| name.split(' ').nth(1).unwrap().starts_with(&format!("{job}-"));
            all.iter()
                .filter(|(name, _)| is(name))
                .map(|(n, u)| (n.clone(), u.clone()))
                .collect()
        };
        let (before, now) = (of_job(before), of_job(&self.identities().await));
        let kept: Identities = before
            .clone()
            .into_iter()
            .filter(|(n, _)| now.contains_key(n))
            .collect();
        assert_eq!(now, if may_lose { kept } else { before }, "{job}");
    }

    /// The test fails unless a job has ended so, and says nothing else of itself.
    pub(crate) async fn expect_end(&self, job: &str, well: bool) -> JobStatus {
        let end = if well {
            ConditionType::Succeeded
        } else {
            ConditionType::Failed
        };
        let status = self.is(job, end).await;
        let also = [
            ConditionType::Running,
            ConditionType::Restarting,
            ConditionType::Suspended,
        ];
        let wrong: Vec<_> = also.into_iter().filter(|t| status.is(*t)).collect();
        assert!(wrong.is_empty(), "{job}: {wrong:?} besides {end:?}");
        assert!(status.completion_time.is_some(), "{job}: {status:?}");
        status
    }
}
