//! A job of that kind lives on the in-memory API: its pods are found under their own names, its status is the kind's own.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube_memory::Cluster;
use serde_json::json;
use tokio::time::Instant;
use training_job::controller::Clock;
use training_job::{Operator, Options, TrainingJob};

use super::job;
use super::list_job::ListJob;

/// A clock that follows tokio's, which is paused.
struct SimulatedClock(Instant);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        start.checked_add(self.0.elapsed()).unwrap()
    }
}

/// Lets the operator work for a while.
async fn advance(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn end(pods: &Api<Pod>, name: &str, exit_code: i32) {
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    let status = json!({"status": {"phase": phase, "containerStatuses": [{
        "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": exit_code}},
    }]}});
    let params = PatchParams::default();
    pods.patch_status(name, &params, &Patch::Merge(status))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_in_another_shape_lives_and_a_role_whose_failures_never_matter_does_not_fail_it() {
    let cluster = Cluster::new();
    let client = cluster.client("default");
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let params = PostParams::default();
    definitions.create(&params, &ListJob::definition()).await.unwrap();
    let options = Options {
        clock: Arc::new(SimulatedClock(Instant::now())),
        ..Options::default()
    };
    let operator = Operator::new(client.clone(), options).manage::<ListJob>();
    let operator = tokio::spawn(operator.run());

    let jobs = Api::<ListJob>::default_namespaced(client.clone());
    let members = [("HEAD", 1), ("WORKER", 2), ("NOTEBOOK", 1)];
    let mut new = job(&members);
    new.metadata.uid = None;
    jobs.create(&params, &new).await.unwrap();
    advance(5).await;
    let pods = Api::<Pod>::default_namespaced(client);
    let names = || async {
        let list = pods.list(&ListParams::default()).await.unwrap();
        let names = list.items.into_iter().filter_map(|pod| pod.metadata.name);
        names.collect::<Vec<_>>()
    };
    let all = [
        "job-boss",
        "job-notebook-x1-0",
        "job-worker-x1-0",
        "job-worker-x1-1",
    ];
    assert_eq!(
        names().await,
        all,
        "each is found again under its name, and none is surplus"
    );
    let stored = || cluster.get("listjobs", "default", "job").unwrap().value().clone();
    assert_eq!(stored()["status"]["phase"], "Creating", "{:#}", stored());
    assert_eq!(stored()["status"]["job"]["conditions"][0]["type"], "Created");

    // No restart is allowed, and a notebook's failure is none.
    end(&pods, "job-notebook-x1-0", 1).await;
    advance(5).await;
    assert_eq!(names().await, all);
    assert_eq!(
        stored()["status"]["job"]["replicaStatuses"]["NOTEBOOK"]["failed"],
        1
    );

    for worker in ["job-worker-x1-0", "job-worker-x1-1"] {
        end(&pods, worker, 0).await;
    }
    advance(60).await;
    assert_eq!(stored()["status"]["phase"], "Done", "{:#}", stored()["status"]);
    assert_eq!(
        names().await,
        ["job-notebook-x1-0", "job-worker-x1-0", "job-worker-x1-1"]
    );
    operator.abort();
}
