//! The jobs of a namespace, and what a test does to their pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use training_job::api::{ConditionType, JobStatus};
use training_job_mxnet::MXJob;
use training_job_testing::cluster::{ControlPlane, Kubelet, wait, wait_for_all};

/// Keeps a pod there that is being deleted, as a kubelet does that ends its processes.
const HOLD: &str = "test.example.com/ends";

/// What is there, by kind and name: its UID. What is being deleted is not.
pub(crate) type Identities = BTreeMap<String, String>;

pub(crate) struct Jobs {
    jobs: Api<MXJob>,
    pods: Api<Pod>,
    services: Api<Service>,
    pub(crate) kubelet: Kubelet,
}

fn label(job: &str) -> String {
    format!("training.kubeflow.org/job-name={job}")
}

fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    phase.unwrap_or_default()
}

impl Jobs {
    pub(crate) async fn new(cluster: &ControlPlane, namespace: &str) -> Self {
        let client = cluster.client();
        Self {
            jobs: Api::namespaced(client.clone(), namespace),
            pods: Api::namespaced(client.clone(), namespace),
            services: Api::namespaced(client, namespace),
            kubelet: cluster.kubelet(namespace).await,
        }
    }

    /// Creates a job of a scheduler, a server and two workers.
    pub(crate) async fn create(&self, name: &str, clean: &str, policy: &str) {
        let role = |replicas| {
            json!({"replicas": replicas, "restartPolicy": policy, "template": {"spec": {
                "containers": [{"name": "mxnet", "image": "example.com/mxnet:1"}],
            }}})
        };
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name},
            "spec": {
                "jobMode": "MXTrain", "runPolicy": {"cleanPodPolicy": clean},
                "mxReplicaSpecs": {"Scheduler": role(1), "Server": role(1), "Worker": role(2)},
            },
        });
        let job: MXJob = serde_json::from_value(job).unwrap();
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
        self.pods(job, |pods| pods.len() == 4).await
    }

    /// Awaits that a job has all its pods, and lets run what does not.
    pub(crate) async fn run(&self, job: &str) {
        for pod in self.complete(job).await {
            if phase(&pod) == "Pending" {
                self.kubelet.runs(&pod.name_any()).await;
            }
        }
    }

    /// Awaits that a job says this of itself.
    pub(crate) async fn is(&self, job: &str, type_: ConditionType) -> JobStatus {
        let is = |job: Option<&MXJob>| {
            let status = job.and_then(|job| job.status.as_ref());
            status.is_some_and(|status| status.job.is(type_))
        };
        let job = wait(self.jobs.clone(), job, is).await;
        job.and_then(|job| job.status).unwrap().job
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
        let pods = self.pods.list(&all).await.unwrap();
        let services = self.services.list(&all).await.unwrap();
        let pods = pods.iter().filter(|pod| stays(pod));
        let pods = pods.map(|pod| (format!("pod {}", pod.name_any()), pod.uid().unwrap()));
        let services = services
            .iter()
            .map(|s| (format!("service {}", s.name_any()), s.uid().unwrap()));
        pods.chain(services).collect()
    }

    /// Awaits that the operator has looked at all jobs: it looks at a new one after those that it has found.
    pub(crate) async fn seen_by_all(&self, marker: &str) {
        self.create(marker, "None", "Never").await;
        self.complete(marker).await;
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
