//! Jobs move from the Go operator to ours and back, from the stand-alone operator to ours, from mpi-operator to ours and
//! back, and from one release to another, at every stage of their lives.

mod jobs;
mod migrate;
mod mpi_operator;
mod others;
mod stages;
mod standalone;
mod upgrade;

use futures::future::join_all;
use training_job_testbed::cluster::{Background, ControlPlane, Signal};

use training_job::api::ConditionType;
use training_operator_testing::operators;

use jobs::Jobs;
use stages::{STAGES, Stage};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pod_is_restarted_where_replicas_restart_one_by_one() {
    hand_over("handover-replica", &["--default-restart-scope=Replica"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_pod_is_restarted_where_jobs_restart_as_a_whole() {
    hand_over("handover-job", &[]).await;
}

/// The program of the Go operator as released.
const GO: &str = "training-operator.v1";

/// The operator that finishes a job.
const ENDS: [&str; 2] = ["ours", "theirs"];

async fn hand_over(namespace: &str, flags: &[&str]) {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace(namespace).await;
    let admin = cluster.kubeconfig();
    let jobs = Jobs::new(cluster, &namespace).await;
    let all: Vec<_> = STAGES
        .into_iter()
        .flat_map(|stage| ENDS.map(|end| (stage, end)))
        .collect();
    let name = |(stage, end): &(Stage, &str)| format!("{}-{end}", stage.name());
    let of = |end: &'static str| all.iter().filter(move |(_, e)| *e == end);

    let theirs = operators::theirs(cluster, &admin, &namespace, GO, &[]).await;
    join_all(all.iter().map(async |one| one.0.begin(&jobs, &name(one)).await)).await;
    let before = jobs.identities().await;
    stop(theirs).await;

    // If jobs restart as a whole, a job that was about to restart may do so.
    let mut ours = operators::ours(cluster, &admin, &namespace, flags).await;
    jobs.seen_by_all("first").await;
    let restarts_whole = flags.is_empty();
    for one in &all {
        if !(one.0 == Stage::AboutToRestart && restarts_whole) {
            jobs.expect_same(&name(one), &before, one.0.may_lose()).await;
        }
    }
    join_all(of("ours").map(async |one| one.0.end(&jobs, &name(one)).await)).await;
    join_all(of("theirs").map(async |one| one.0.go_on(&jobs, &name(one)).await)).await;

    let restarted = name(&(Stage::Restarting, "theirs"));
    assert_eq!(jobs.is(&restarted, ConditionType::Running).await.restart_count, 1);

    // Our operator is killed while it works, and restarts.
    ours.signal(Signal::KILL);
    ours.exit_code().await;
    let before = jobs.identities().await;
    ours = operators::ours(cluster, &admin, &namespace, flags).await;
    jobs.seen_by_all("second").await;
    for one in &all {
        jobs.expect_same(&name(one), &before, one.0.may_lose()).await;
    }
    stop(ours).await;

    let theirs = operators::theirs(cluster, &admin, &namespace, GO, &[]).await;
    jobs.seen_by_all("third").await;
    for one in &all {
        jobs.expect_same(&name(one), &before, one.0.may_lose()).await;
    }
    join_all(of("theirs").map(async |one| one.0.end(&jobs, &name(one)).await)).await;
    for one in &all {
        let status = jobs.expect_end(&name(one), one.0 != Stage::Failed).await;
        if one.0 == Stage::Restarting {
            // The Go operator writes statuses, even of ended jobs, without the fields that it lacks.
            assert_eq!(status.restart_count, 0, "{}", name(one));
        }
    }
    stop(theirs).await;
}

/// Ends an operator as a Deployment does. The Go operator always panics after it has finished its work.
async fn stop(operator: Background) {
    operator.signal(Signal::TERM);
    let code = operator.exit_code().await;
    let ended = code == 0
        || operator
            .text()
            .contains("Wait completed, proceeding to shutdown the manager");
    assert!(ended, "{code}: {}", operator.text());
}
