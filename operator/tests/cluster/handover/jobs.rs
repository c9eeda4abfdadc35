//! The jobs of a namespace, and the changes that a test makes to their pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, ListParams, ObjectList, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, Object};
use serde_json::{Map, Value, json};
use training_job::api::{ConditionType, JobStatus};
use training_job_testbed::cluster::{ControlPlane, Kubelet, wait, wait_for_all};

/// The finalizer that keeps a deleted pod, as a kubelet does while it ends the pod's processes.
const HOLD: &str = "test.example.com/ends";

/// The UIDs of the existing objects by kind and name. Objects that are being deleted are excluded.
pub(crate) type Identities = BTreeMap<String, String>;

type Job = Object<Value, JobStatus>;

/// A kind of job, and the replicas of its job. Two workers are `worker-0` and `worker-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) container: &'static str,
    specs: &'static str,
    roles: &'static [(&'static str, u32)],
    /// The replica whose success is the job's.
    pub(crate) leader: &'static str,
    /// True if the job succeeds only after all other replicas.
    pub(crate) all_decide: bool,
    /// True if the Go operator replaces a replica that was killed.
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

/// The kinds that came after the MXJob. The Go operator v1.8.1 does not support the JAXJob.
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

/// All kinds of kubeflow.org.
pub(crate) const ALL: [Kind; 7] = [
    MXNET,
    OTHERS[0],
    OTHERS[1],
    Kind {
        is_restarted: true,
        ..OTHERS[2]
    },
    Kind {
        name: "TFJob",
        container: "tensorflow",
        specs: "tfReplicaSpecs",
        roles: &[("Chief", 1), ("Worker", 2)],
        leader: "chief-0",
        ..MXNET
    },
    Kind {
        name: "XGBoostJob",
        container: "xgboost",
        specs: "xgbReplicaSpecs",
        roles: &[("Master", 1), ("Worker", 2)],
        leader: "master-0",
        ..MXNET
    },
    Kind {
        name: "JAXJob",
        container: "jax",
        specs: "jaxReplicaSpecs",
        roles: &[("Worker", 3)],
        leader: "worker-2",
        all_decide: true,
        ..MXNET
    },
];

impl Kind {
    fn pods(self) -> usize {
        self.roles.iter().map(|(_, count)| *count as usize).sum()
    }

    /// Returns the replicas whose success is the job's.
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
        if self.kind.name == "MPIJob" {
            spec["launcherCreationPolicy"] = json!("AtStartup");
        }
        let job = Job::new(name, &self.resource, spec);
        self.jobs.create(&PostParams::default(), &job).await.unwrap();
    }

    /// Waits until a job's pods meet a condition. Pods that are being deleted are excluded.
    pub(crate) async fn pods(&self, job: &str, mut condition: impl FnMut(&[Pod]) -> bool) -> Vec<Pod> {
        let label = label(job);
        let all = wait_for_all(self.pods.clone(), &label, |all| {
            let all: Vec<_> = all.iter().filter(|p| stays(p)).cloned().collect();
            condition(&all)
        });
        all.await.into_iter().filter(stays).collect()
    }

    /// Waits until a job has all its pods.
    pub(crate) async fn complete(&self, job: &str) -> Vec<Pod> {
        self.pods(job, |pods| pods.len() == self.kind.pods()).await
    }

    /// Waits until a job has all its pods and at least one meets a condition.
    pub(crate) async fn complete_and(&self, job: &str, is: impl Fn(&Pod) -> bool) {
        self.pods(job, |pods| pods.len() == self.kind.pods() && pods.iter().any(&is))
            .await;
    }

    /// Starts pending pods until a job has all its pods. One may be created only when all others run.
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

    /// Waits until a condition of a job is true.
    pub(crate) async fn is(&self, job: &str, type_: ConditionType) -> JobStatus {
        let is = |job: Option<&Job>| {
            let status = job.and_then(|job| job.status.as_ref());
            status.is_some_and(|status| status.is(type_))
        };
        let job = wait(self.jobs.clone(), job, is).await;
        job.and_then(|job| job.status).unwrap()
    }

    /// Returns the status of a job.
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

    /// Keeps all pods of a job for a while when they are deleted.
    pub(crate) async fn hold(&self, job: &str) {
        for pod in self.complete(job).await {
            self.finalizers(&pod, json!([HOLD])).await;
        }
    }

    /// Releases the pods that `hold` keeps.
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

    /// Waits until all pods of a job are being deleted.
    pub(crate) async fn stopped(&self, job: &str) {
        self.pods(job, <[Pod]>::is_empty).await;
    }

    /// Waits until a job has no pods and services.
    pub(crate) async fn gone(&self, job: &str) {
        wait_for_all(self.pods.clone(), &label(job), <[Pod]>::is_empty).await;
        wait_for_all(self.services.clone(), &label(job), <[Service]>::is_empty).await;
    }

    /// Returns the objects of all jobs.
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

    /// Waits until the operator has reconciled all jobs. It reconciles a new job after the existing ones.
    pub(crate) async fn seen_by_all(&self, marker: &str) {
        self.create(marker, "None", "Never").await;
        self.pods(marker, |pods| !pods.is_empty()).await;
        self.is(marker, ConditionType::Created).await;
    }

    /// Fails unless a job has the same objects as before. If it `may_lose`, objects may be missing. The address of a
    /// scheduler that has ended is given back.
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
        let scheduler = self.pods.get_opt(&format!("{job}-scheduler-0")).await.unwrap();
        let phase = scheduler.and_then(|pod| pod.status?.phase);
        let has_ended = matches!(phase.as_deref(), Some("Succeeded" | "Failed"));
        let address = format!("service {job}-scheduler-0");
        let stays = |name: &String| now.contains_key(name) || !has_ended || *name != address;
        let before = before.into_iter().filter(|(name, _)| stays(name)).collect();
        assert_eq!(now, if may_lose { kept } else { before }, "{job}");
    }

    /// Fails unless a job has ended in this way and has no other condition.
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
