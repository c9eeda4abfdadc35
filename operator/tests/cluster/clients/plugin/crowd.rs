//! A cluster with 1,000 jobs.

use futures::StreamExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use training_job_mxnet::MXJob;
use training_job_testbed::cluster::{Audit, ControlPlane, Options};

use super::run_as;
use super::ui::{Ui, until_line};
use crate::rig::jobs::job;

const JOBS: usize = 1_000;

/// The requests for one list: one for each kind, and one more for each page after the first.
const MAX_CALLS: usize = 9 + JOBS / 500;

#[tokio::test]
async fn a_thousand_jobs_are_listed_in_a_few_requests() {
    let cluster = &ControlPlane::start(Options {
        audit: Some(Audit::All),
        ..Options::default()
    })
    .await;
    cluster.install_crds().await;
    let namespaces = [
        cluster.namespace("crowd-a").await,
        cluster.namespace("crowd-b").await,
    ];
    let create = async |n: usize| {
        let name = format!("job-{n:04}");
        let api: Api<MXJob> = Api::namespaced(cluster.client(), &namespaces[n % 2]);
        let job: MXJob = serde_json::from_value(job(&name, 4)).unwrap();
        api.create(&PostParams::default(), &job).await.unwrap();
        let condition =
            json!({"type": "Running", "status": "True", "reason": "MXJobRunning", "message": "runs"});
        let status = json!({"status": {"conditions": [condition], "ready": "4/4", "replicaStatuses": {
            "Scheduler": {"active": 1}, "Worker": {"active": 3}}}});
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
    };
    futures::stream::iter(0..JOBS)
        .for_each_concurrent(16, create)
        .await;
    let before = cluster.audit().len();
    let listed = run_as(cluster, &cluster.kubeconfig(), &["list", "-A", "-o", "json"])
        .await
        .success();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let rows = listed["jobs"].as_array().unwrap();
    assert_eq!(rows.len(), JOBS);
    assert!(
        rows.iter()
            .all(|row| row["state"] == "Running" && row["roles"][1]["ready"] == 3),
        "{}",
        rows[0]
    );
    let calls: Vec<String> = cluster
        .audit()
        .iter()
        .skip(before)
        .map(|call| call.summary())
        .collect();
    assert!(calls.len() <= MAX_CALLS, "{calls:#?}");

    let ui = Ui::start_in(cluster, &cluster.kubeconfig(), &["-A"]).await;
    let mut events = ui.changes().await;
    let page = ui.get("/").await;
    assert!(page.contains("1000 of 1000 jobs"), "{}", &page[..2_000]);
    assert!(page.len() < 300 * JOBS, "{} bytes", page.len());
    // Until the watches have begun, their own lists are among the requests.
    let api: Api<MXJob> = Api::namespaced(cluster.client(), &namespaces[0]);
    for mark in ["a", "b"] {
        let label = Patch::Merge(json!({"metadata": {"labels": {"mark": mark}}}));
        api.patch("job-0000", &PatchParams::default(), &label)
            .await
            .unwrap();
        until_line(&mut events, "data: list\n").await;
    }
    let before = cluster.audit().len();
    ui.get("/").await;
    let calls = cluster.audit();
    let lists = calls.iter().skip(before).filter(|call| call.verb == "list");
    assert!(lists.count() <= MAX_CALLS);
}
