//! The examples train on two nodes.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::example::{example, with_env};
use crate::stage::Stage;
use crate::times;

/// Runs an example to its success, with pods on both nodes. All its pods remain.
pub(crate) async fn trains(name: &str) -> Stage {
    runs_to_its_end(name, example(name)).await
}

async fn runs_to_its_end(name: &str, mut job: Value) -> Stage {
    job["spec"]["runPolicy"]["cleanPodPolicy"] = "None".into();
    let stage = Stage::new(&name.replace('/', "-")).await;
    let from = stage.create(&job).await;
    stage.condition(&job, "Running").await;
    assert_eq!(
        stage.nodes().await,
        BTreeSet::from(["node-1".into(), "node-2".into()])
    );
    let status = stage.succeeds(&job).await;
    times::record(&format!("{name}: created -> succeeded"), from, Timestamp::now());
    assert_eq!(status["restartCount"], Value::Null, "{status:#}");
    assert_eq!(status["failure"], Value::Null, "{status:#}");
    let kind = job["kind"].as_str().unwrap();
    stage.event(&job, &format!("{kind}Succeeded")).await;
    let columns = stage.columns(&job).await;
    assert_eq!(columns["STATE"], "Succeeded", "{columns:?}");
    assert_eq!(columns["FAILURE"], "", "{columns:?}");
    stage
}

#[tokio::test]
async fn mxnet_trains() {
    let stage = trains("mxnet/train").await;
    let mut weights = BTreeSet::new();
    for worker in ["spirals-worker-0", "spirals-worker-1"] {
        let log = stage.log(worker).await;
        let (_, digest) = log.split_once("weights=").unwrap_or_else(|| panic!("{log}"));
        weights.insert(digest.split_whitespace().next().unwrap().to_owned());
    }
    assert_eq!(weights.len(), 1, "the workers have different weights");
}

#[tokio::test]
async fn tvm_tunes() {
    trains("mxnet/tune").await;
}

#[tokio::test]
async fn xgboost_trains() {
    trains("xgboost/train").await;
}

#[tokio::test]
async fn mpi_trains() {
    trains("mpi/train").await;
}

/// The `mpirun` of the image starts its ranks by `ssh`, with the keys of the job, in the `sshd` of the workers.
#[tokio::test]
async fn mpi_trains_by_ssh() {
    let mut job = example("mpi/train");
    job["apiVersion"] = "kubeflow.org/v2beta1".into();
    let stage = runs_to_its_end("mpi-ssh/train", job).await;
    let log = stage.log("moons-launcher").await;
    for rank in 0..2 {
        assert!(log.contains(&format!("rank={rank} of 2 ")), "{log}");
        let worker = stage.log(&format!("moons-worker-{rank}")).await;
        assert!(worker.contains("Accepted publickey"), "{worker}");
    }
}

/// CoreDNS keeps the old addresses for 30 s. The scheduler's address must not change with its pod.
#[tokio::test]
async fn mxnet_trains_again_after_a_kill() {
    let job = with_env(with_env(example("mxnet/train"), "STEPS", "3000"), "PAUSE", "0.2");
    let stage = Stage::new("mxnet-killed").await;
    let created = stage.create(&job).await;
    let (_, trains) = stage.prints("spirals-worker-0", "kvstore", None).await;
    times::record("mxnet: created -> trains", created, trains);
    let (before, _) = stage.prints("spirals-worker-0", "step=20", None).await;
    let killed = stage.kill(&before).await;
    let (_, again) = stage.prints("spirals-worker-0", "kvstore", Some(&before)).await;
    times::record("mxnet: worker killed -> trains again", killed, again);
    let status = stage.restarted(&job, 1).await;
    assert_eq!(status["failure"]["summary"], "worker-0: exit 137", "{status:#}");
    assert_eq!(status["failure"]["signal"], 9, "{status:#}");
    stage.event(&job, "MXJobRestarting").await;
}
