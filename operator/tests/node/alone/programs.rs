//! Programs of nodes and of the operator that are killed.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::Api;
use serde_json::Value;
use training_job_testbed::cluster::wait;

use crate::cluster::{cluster, lab};
use crate::install::NAMESPACE;
use crate::job::{TRAINS, small};
use crate::stage::{Stage, number};
use crate::times;

/// Kills a program of both nodes, and waits until the kubelets have reported since.
async fn kill(program: &str) {
    let api: Api<Lease> = Api::namespaced(cluster().await.client(), "kube-node-lease");
    for node in ["node-1", "node-2"] {
        lab(&["exec", number(node), "pkill", "-KILL", "-x", program]).await;
        let from = Timestamp::now();
        let renewed = |lease: &Lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0);
        wait(api.clone(), node, |lease: Option<&Lease>| {
            lease.and_then(renewed) > Some(from)
        })
        .await;
    }
}

async fn containers(stage: &Stage) -> Vec<(String, Option<String>)> {
    let pods = stage.pods().list(&Default::default()).await.unwrap();
    let id = |pod: &Pod| {
        pod.status
            .as_ref()?
            .container_statuses
            .as_ref()?
            .first()?
            .container_id
            .clone()
    };
    pods.iter()
        .map(|pod| (pod.metadata.name.clone().unwrap(), id(pod)))
        .collect()
}

async fn nothing_happens_without(program: &str) {
    let stage = Stage::new(program).await;
    let job = small(program);
    stage.create(&job).await;
    for replica in ["scheduler-0", "server-0", "worker-0", "worker-1"] {
        stage.prints(&format!("{program}-{replica}"), TRAINS, None).await;
    }
    stage.condition(&job, "Running").await;
    let before = containers(&stage).await;
    kill(program).await;
    let after = Stage::new("after").await;
    let next = small("next");
    after.create(&next).await;
    after.prints("next-worker-0", TRAINS, None).await;
    assert_eq!(containers(&stage).await, before);
    let status = stage.condition(&job, "Running").await;
    assert_eq!(status["restartCount"], Value::Null, "{status:#}");
    assert_eq!(status["failure"], Value::Null, "{status:#}");
    for (stage, job) in [(&stage, &job), (&after, &next)] {
        stage
            .kubectl(&["delete", "mxjob", job["metadata"]["name"].as_str().unwrap()])
            .await;
    }
}

#[tokio::test]
async fn a_killed_kubelet_does_no_harm() {
    nothing_happens_without("kubelet").await;
}

#[tokio::test]
async fn a_killed_containerd_does_no_harm() {
    nothing_happens_without("containerd").await;
}

/// The leader and a worker are killed at once. The standby takes over after 15 s.
#[tokio::test]
async fn the_next_operator_restarts_the_job() {
    let stage = Stage::new("leader").await;
    let job = small("leader");
    stage.create(&job).await;
    let (worker, _) = stage.prints("leader-worker-0", TRAINS, None).await;
    stage.condition(&job, "Running").await;
    let leases: Api<Lease> = Api::namespaced(stage.plane.client(), NAMESPACE);
    let lease = leases
        .get("1ca428e5.training-operator.kubeflow.org")
        .await
        .unwrap();
    let holder = lease.spec.unwrap().holder_identity.unwrap();
    let name = holder.split('_').next().unwrap();
    let operators: Api<Pod> = Api::namespaced(stage.plane.client(), NAMESPACE);
    let leader = operators.get(name).await.unwrap();
    stage.kill(&leader).await;
    let killed = stage.kill(&worker).await;
    let (_, again) = stage.prints("leader-worker-0", TRAINS, Some(&worker)).await;
    times::record(
        "small job: leader and worker killed -> trains again",
        killed,
        again,
    );
    let status = stage.restarted(&job, 1).await;
    assert_eq!(status["failure"]["summary"], "worker-0: exit 137", "{status:#}");
    stage.kubectl(&["delete", "mxjob", "leader"]).await;
}
