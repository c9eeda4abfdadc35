//! Jobs move from the stand-alone mxnet-operator to ours, at every stage of their lives. The test creates the objects
//! as that operator did: with the same names and owners as ours, and with other labels.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use training_job::api::ConditionType;
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::operators;

use super::jobs::Jobs;

/// A version of the stand-alone operator, by its labels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Release {
    /// v1.1.0 and later.
    Newest,
    /// v0.7.0 and v1.0.0.
    Middle,
    /// Jobs of `v1beta1`, in all versions.
    Beta,
}

const RELEASES: [Release; 3] = [Release::Newest, Release::Middle, Release::Beta];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No pod runs yet. One pod and its service are missing.
    Created,
    Running,
    /// A worker has failed for good after the operator stopped.
    Failed,
    /// A worker whose role has the policy ExitCode was killed after the operator stopped.
    Killed,
    /// It has ended, and its pods remain.
    Finished,
}

const STAGES: [Stage; 5] = [
    Stage::Created,
    Stage::Running,
    Stage::Failed,
    Stage::Killed,
    Stage::Finished,
];

const REPLICAS: [(&str, u32); 4] = [("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1)];

impl Release {
    fn version(self) -> &'static str {
        match self {
            Self::Newest | Self::Middle => "v1",
            Self::Beta => "v1beta1",
        }
    }

    fn labels(self, job: &str, role: &str, index: u32) -> Value {
        let index = index.to_string();
        match self {
            Self::Newest => json!({"group-name": "kubeflow.org", "job-name": job,
                "replica-type": role, "replica-index": index}),
            Self::Middle => json!({"group-name": "kubeflow.org", "mxnet-job-name": job,
                "mxnet-replica-type": role, "mxnet-replica-index": index}),
            Self::Beta => json!({"group_name": "kubeflow.org", "mxnet_job_name": job,
                "mxnet-replica-type": role, "mxnet-replica-index": index}),
        }
    }

    /// Returns the status as it was stored.
    fn status(self, stage: Stage) -> Value {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": format!("MXJob{type_}"), "message": "",
                "lastTransitionTime": "2021-04-01T00:00:00Z", "lastUpdateTime": "2021-04-01T00:00:00Z"})
        };
        let mut conditions = vec![condition("Created", "True")];
        let (active, succeeded) = match stage {
            Stage::Created => (0, 0),
            Stage::Finished => (0, 1),
            Stage::Running | Stage::Failed | Stage::Killed => (1, 0),
        };
        if stage != Stage::Created {
            conditions.push(condition(
                "Running",
                if stage == Stage::Finished { "False" } else { "True" },
            ));
        }
        let counts = json!({"active": active, "succeeded": succeeded});
        let counts = json!({"Scheduler": counts, "Server": counts, "Worker": counts});
        let mut status = json!({"startTime": "2021-04-01T00:00:00Z", "conditions": conditions});
        match self {
            Self::Newest => status["replicaStatuses"] = counts,
            Self::Middle | Self::Beta => status["mxReplicaStatuses"] = counts,
        }
        if stage == Stage::Finished {
            let conditions = status["conditions"].as_array_mut().unwrap();
            conditions.push(condition("Succeeded", "True"));
            status["completionTime"] = json!("2021-04-01T01:00:00Z");
        }
        status
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Old {
    pub(crate) release: Release,
    pub(crate) stage: Stage,
}

impl Old {
    pub(crate) fn name(self) -> String {
        format!("{:?}-{:?}", self.release, self.stage).to_lowercase()
    }

    /// Returns true if this replica was missing when its operator stopped.
    fn lacks(self, role: &str, index: u32) -> bool {
        self.stage == Stage::Created && (role, index) == ("worker", 1)
    }

    /// Creates the job and its objects.
    pub(crate) async fn make(self, client: &Client, jobs: &Jobs, namespace: &str) {
        let name = self.name();
        let policy = if self.stage == Stage::Killed {
            "ExitCode"
        } else {
            "Never"
        };
        let role = |replicas| {
            json!({"replicas": replicas, "restartPolicy": policy, "template": {"spec": {
                "containers": [{"name": "mxnet", "image": "example.com/mxnet:1"}],
            }}})
        };
        let version = self.release.version();
        let kind = GroupVersionKind::gvk("kubeflow.org", version, "MXJob");
        let api = Api::<DynamicObject>::namespaced_with(
            client.clone(),
            namespace,
            &ApiResource::from_gvk_with_plural(&kind, "mxjobs"),
        );
        let job = json!({
            "apiVersion": format!("kubeflow.org/{version}"), "kind": "MXJob", "metadata": {"name": name},
            "spec": {
                "jobMode": "MXTrain", "cleanPodPolicy": "None",
                "mxReplicaSpecs": {"Scheduler": role(1), "Server": role(1), "Worker": role(2)},
            },
        });
        let created: DynamicObject = serde_json::from_value(job).unwrap();
        let job = api.create(&PostParams::default(), &created).await.unwrap();
        let owner = json!([{"apiVersion": format!("kubeflow.org/{version}"), "kind": "MXJob", "name": name,
            "uid": job.uid(), "controller": true, "blockOwnerDeletion": true}]);
        for (role, index) in REPLICAS
            .into_iter()
            .filter(|(role, index)| !self.lacks(role, *index))
        {
            let labels = self.release.labels(&name, role, index);
            let meta =
                json!({"name": format!("{name}-{role}-{index}"), "ownerReferences": owner, "labels": labels});
            let pod = json!({"metadata": meta, "spec": {"restartPolicy": "Never",
                "containers": [{"name": "mxnet", "image": "example.com/mxnet:1"}]}});
            let service = json!({"metadata": meta, "spec": {"clusterIP": "None", "selector": labels,
                "ports": [{"name": "mxjob-port", "port": 9091}]}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            let service: Service = serde_json::from_value(service).unwrap();
            let (pods, services) = (
                Api::namespaced(client.clone(), namespace),
                Api::namespaced(client.clone(), namespace),
            );
            pods.create(&PostParams::default(), &pod).await.unwrap();
            services.create(&PostParams::default(), &service).await.unwrap();
            let name = pod.name_any();
            match (self.stage, role, index) {
                (Stage::Created, ..) => {}
                (Stage::Failed, "worker", 1) => jobs.kubelet.exits(&name, "mxnet", 1).await,
                (Stage::Killed, "worker", 1) => jobs.kubelet.exits(&name, "mxnet", 137).await,
                (Stage::Finished, ..) => jobs.kubelet.succeeds(&name).await,
                _ => jobs.kubelet.runs(&name).await,
            }
        }
        let status = Patch::Merge(json!({"status": self.release.status(self.stage)}));
        api.patch_status(&name, &PatchParams::default(), &status)
            .await
            .unwrap();
    }

    /// Continues the job under our operator, to its end.
    pub(crate) async fn go_on(self, jobs: &Jobs) {
        let name = self.name();
        match self.stage {
            Stage::Finished => return drop(jobs.expect_end(&name, true).await),
            Stage::Failed => return drop(jobs.expect_end(&name, false).await),
            Stage::Created | Stage::Running | Stage::Killed => {}
        }
        jobs.run(&name).await;
        let running = jobs.is(&name, ConditionType::Running).await;
        let restarts = i32::from(self.stage == Stage::Killed);
        assert_eq!(running.restart_count, restarts, "{name}");
        for replica in ["worker-0", "worker-1", "scheduler-0"] {
            jobs.kubelet.succeeds(&format!("{name}-{replica}")).await;
        }
        jobs.expect_end(&name, true).await;
    }
}

/// Returns all pods and services of a namespace by kind and name.
async fn all(client: &Client, namespace: &str) -> Vec<(String, Value)> {
    let list = ListParams::default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&list).await.unwrap().items.into_iter();
    let services = services.list(&list).await.unwrap().items.into_iter();
    let pods = pods.map(|pod| (format!("pod {}", pod.name_any()), json!(pod)));
    let services = services.map(|service| (format!("service {}", service.name_any()), json!(service)));
    pods.chain(services).collect()
}

fn includes(labels: &Value, selector: &Value) -> bool {
    let selector = selector.as_object().unwrap();
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_the_stand_alone_operator_are_taken_over() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("handover-standalone").await;
    let client = cluster.client();
    let jobs = Jobs::new(cluster, &namespace).await;
    let olds: Vec<_> = RELEASES
        .into_iter()
        .flat_map(|release| STAGES.map(|stage| Old { release, stage }))
        .collect();
    join_all(
        olds.iter()
            .map(async |old| old.make(&client, &jobs, &namespace).await),
    )
    .await;
    let before = all(&client, &namespace).await;

    let flags = ["--default-restart-scope=Replica"];
    let ours = operators::ours(cluster, &cluster.kubeconfig(), &namespace, &flags).await;
    jobs.seen_by_all("marker").await;
    for old in &olds {
        // Missing pods are created, and killed pods are replaced.
        if old.stage != Stage::Finished {
            jobs.complete(&old.name()).await;
        }
    }
    let now = all(&client, &namespace).await;
    let find = |name: &str| now.iter().find(|(n, _)| n == name).map(|(_, object)| object);
    for (name, old) in &before {
        let new = find(name).unwrap_or_else(|| panic!("{name} is gone"));
        let same = old["metadata"]["uid"] == new["metadata"]["uid"];
        let replaced = name.starts_with("pod") && name.ends_with("killed-worker-1");
        assert_eq!(same, !replaced, "{name}");
        if name.contains("finished") {
            assert_eq!(new, old, "{name}: it stays as it is");
        } else if !replaced {
            assert!(
                includes(&new["metadata"]["labels"], &old["metadata"]["labels"]),
                "{name}: others stay"
            );
        }
    }
    let of_old = |(name, _): &&(String, Value)| !name.contains("marker");
    let count = now.iter().filter(of_old).count();
    assert_eq!(count, 2 * REPLICAS.len() * olds.len(), "none is doubled");
    // Each service selects its pod, whichever operator created either.
    for (name, service) in now.iter().filter(|(name, _)| name.starts_with("service")) {
        let selector = &service["spec"]["selector"];
        let found = now.iter().filter(|(name, object)| {
            name.starts_with("pod") && includes(&object["metadata"]["labels"], selector)
        });
        let found: Vec<_> = found.map(|(name, _)| name.replace("pod", "service")).collect();
        assert_eq!(found, [&**name]);
    }

    join_all(olds.iter().map(async |old| old.go_on(&jobs).await)).await;
    assert_eq!(ours.ended(), None, "{}", ours.text());
}
