//! The state of jobs and pods on the API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::{Api, ResourceExt};
use serde::Serialize;
use training_job::TrainingJob;
use training_job::api::{ConditionType, JobStatus, labels};
use training_job_testbed::cluster::wait_for_all;

use super::trial::Trial;
use crate::processes;

/// The state of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    pub uid: String,
    pub phase: String,
    /// The number of its replacements, and of its containers' restarts.
    pub restarts: (u32, i32),
}

impl Trial<'_> {
    /// Waits until a job's status meets a condition.
    pub async fn status<J>(&self, job: &str, wanted: impl Fn(&JobStatus) -> bool) -> JobStatus
    where
        J: TrainingJob + Serialize,
    {
        let reached = |found: Option<&J>| found.and_then(TrainingJob::status).is_some_and(&wanted);
        let found = self.plane.wait::<J>(&self.namespace, job, reached).await;
        found.and_then(|job| job.status().cloned()).unwrap_or_default()
    }

    /// Waits until a condition of a job is true.
    pub async fn condition<J>(&self, job: &str, type_: ConditionType) -> JobStatus
    where
        J: TrainingJob + Serialize,
    {
        self.status::<J>(job, |status| status.is(type_)).await
    }

    /// Waits for the end of a job, which must succeed.
    pub async fn success<J>(&self, job: &str)
    where
        J: TrainingJob + Serialize,
    {
        let status = self.status::<J>(job, JobStatus::is_finished).await;
        assert!(
            status.is(ConditionType::Succeeded),
            "{status:#?}\n{}",
            self.node.text()
        );
        assert!(!status.is(ConditionType::Running), "{status:#?}");
    }

    fn all_pods(&self) -> Api<Pod> {
        Api::namespaced(self.plane.client(), &self.namespace)
    }

    /// Returns the pods by name.
    pub async fn pods(&self) -> BTreeMap<String, Stand> {
        stands(&self.all_pods().list(&Default::default()).await.unwrap().items)
    }

    /// Waits until this number of pods remains.
    pub async fn pods_left(&self, count: usize) {
        wait_for_all(self.all_pods(), "", |pods| pods.len() == count).await;
    }

    /// Waits until there are no pods, and checks that their processes have ended.
    pub async fn no_pods(&self) {
        self.pods_left(0).await;
        assert_eq!(processes::of_pods(self.agent()), [""; 0]);
    }

    /// Waits until there are no services.
    pub async fn no_services(&self) {
        let services: Api<Service> = Api::namespaced(self.plane.client(), &self.namespace);
        wait_for_all(services, "", |services| services.is_empty()).await;
    }

    /// Waits until no pod runs. All must have succeeded, each after this number of replacements.
    pub async fn all_succeed(&self, restarts: u32) -> Vec<String> {
        let over = |pod: &Pod| matches!(stand(pod).phase.as_str(), "Succeeded" | "Failed");
        let pods = wait_for_all(self.all_pods(), "", |pods| pods.iter().all(over)).await;
        let pods = stands(&pods);
        for (name, stand) in &pods {
            let seen = (stand.phase.as_str(), stand.restarts);
            assert_eq!(seen, ("Succeeded", (restarts, 0)), "{name}\n{}", self.node.text());
        }
        pods.into_keys().collect()
    }

    /// Checks that the results of the workers are equal after `key`.
    pub fn expect_same_result(&self, key: &str, workers: usize) {
        let text = self.node.text();
        let results: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" | RESULT "))
            .map(|line| line.split_once(key).unwrap_or_else(|| panic!("{line}")).1)
            .collect();
        assert_eq!(results.len(), workers, "{text}");
        assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    }
}

fn stands(pods: &[Pod]) -> BTreeMap<String, Stand> {
    pods.iter().map(|pod| (pod.name_any(), stand(pod))).collect()
}

fn stand(pod: &Pod) -> Stand {
    let attempt = pod.annotations().get(labels::RESTART_ATTEMPT);
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    Stand {
        uid: pod.uid().unwrap(),
        phase: status.phase.unwrap_or_default(),
        restarts: (
            attempt.map_or(0, |attempt| attempt.parse().unwrap()),
            containers.iter().map(|container| container.restart_count).sum(),
        ),
    }
}
