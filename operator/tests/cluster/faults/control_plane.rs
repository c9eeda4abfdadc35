//! The API server dies and restarts.

use training_job::api::ConditionType;
use training_job_testbed::cluster::{ControlPlane, Fault, On, Options};
use training_operator_testing::operator::Operator;

use crate::rig::jobs::{cleaned, deciding, job};
use crate::rig::stage::Stage;

#[tokio::test]
async fn jobs_outlive_the_api_servers_death_at_any_time() {
    let cluster = ControlPlane::start(Options::default()).await;
    let stage = Stage::of(&cluster, "outage").await;
    let flags = ["--enable-scheme=MXJob"];
    let operator = Operator::start(&cluster, stage.proxy.kubeconfig(), &flags);
    stage.create(job("runs", 2)).await;
    let pods = stage.until_all_run("runs", 2).await;

    // During the creation of a job.
    let held = stage
        .proxy
        .fault(On::call("create", "pods").named("half-worker-3"), Fault::Held);
    stage.create(cleaned(job("half", 6), "All")).await;
    stage
        .proxy
        .wait_for(&On::call("create", "pods").prefixed("half"), 5)
        .await;
    held.happened(1).await;
    cluster.stop_api_server();
    held.lift();
    operator.0.wait_for_line("the API server is away").await;
    cluster.start_api_server().await;
    stage.until_all_run("half", 6).await;
    assert_eq!(stage.pods_of("runs").await, pods);

    // During the end of a job.
    let held = stage
        .proxy
        .fault(On::call("delete", "pods").prefixed("half"), Fault::Held);
    stage.kubelet.succeeds(&deciding("half", 6)).await;
    held.happened(5).await;
    cluster.stop_api_server();
    held.lift();
    cluster.start_api_server().await;
    stage.until_pods("half", 0).await;
    stage.until("half", ConditionType::Succeeded).await;
    // A server that has just started can reject a list, so that the operator retries it.
    let answered = |resource| {
        let calls = stage.proxy.calls().into_iter();
        let lists = calls.filter(|call| call.verb == "list" && call.resource == resource);
        lists.filter(|call| call.code == Some(200)).count()
    };
    for resource in ["mxjobs", "pods", "services"] {
        // One list at the start, and for each outage one, or two if the server answered the first from etcd before
        // it had filled its cache: the watch from that version fails then, because the cache starts later.
        let lists = answered(resource);
        assert!(lists <= 5, "{lists} lists of {resource}");
    }

    // The history is compacted, so that the version of the last service is gone.
    let lists = On::call("list", "services");
    let before = answered("services");
    let found = stage.jobs().list(&Default::default()).await.unwrap();
    let version = found.metadata.resource_version.unwrap().parse().unwrap();
    cluster.stop_api_server();
    cluster.compact(version).await;
    cluster.start_api_server().await;
    stage.proxy.wait_for(&lists, before + 1).await;
    stage.succeed("runs", 2).await;
    assert_eq!(stage.pods_of("runs").await, pods);
    stage.expect_no_harm();
    operator.expect_well();
}
