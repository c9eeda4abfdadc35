//! Jobs of the kinds that came after the MXJob move from the Go operator to ours, at every stage of their lives.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use training_job_testbed::cluster::ControlPlane;
use training_operator_testing::operators;

use super::jobs::{Identities, Jobs, Kind, OTHERS};
use super::stages::{STAGES, Stage};
use super::{GO, stop};

/// Returns true if the stage exists. Under the Go operator an MPIJob stays Restarting forever, and no pod is deleted.
fn is_possible(kind: Kind, stage: Stage) -> bool {
    kind.is_restarted || stage != Stage::AboutToRestart
}

/// Returns true if our operator restarts the job as a whole, because it finds the failure of a killed replica.
fn is_restarted(kind: Kind, stage: Stage) -> bool {
    stage == Stage::AboutToRestart || stage == Stage::Restarting && !kind.is_restarted
}

fn is_created_mpi(jobs: &Jobs, stage: Stage) -> bool {
    jobs.kind.name == "MPIJob" && stage == Stage::Created
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_the_other_kinds_are_taken_over_as_they_are() {
    let cluster = ControlPlane::shared().await;
    cluster.install_crds().await;
    let namespace = cluster.namespace("handover-others").await;
    let admin = cluster.kubeconfig();
    let schemes = OTHERS.map(|kind| format!("--enable-scheme={}", kind.name.to_lowercase()));
    let schemes = schemes.each_ref().map(String::as_str);
    let kinds = join_all(OTHERS.map(|kind| Jobs::of(kind, cluster, &namespace))).await;
    let mut all = Vec::new();
    for jobs in &kinds {
        let stages = STAGES.into_iter().filter(|stage| is_possible(jobs.kind, *stage));
        all.extend(stages.map(|stage| (jobs, stage, format!("{}-{}", jobs.kind.container, stage.name()))));
    }

    let theirs = operators::theirs(cluster, &admin, &namespace, GO, &schemes).await;
    join_all(
        all.iter()
            .map(async |(jobs, stage, job)| stage.begin(jobs, job).await),
    )
    .await;
    let before = kinds[0].identities().await;
    let statuses = join_all(all.iter().map(async |(jobs, _, job)| jobs.status(job).await)).await;
    stop(theirs).await;
    let failures = failures(cluster, &namespace).await;

    let ours = operators::ours(cluster, &admin, &namespace, &schemes).await;
    for jobs in &kinds {
        jobs.seen_by_all(&format!("{}-last", jobs.kind.container)).await;
    }
    for ((jobs, stage, job), status) in all.iter().zip(statuses) {
        if !is_restarted(jobs.kind, *stage) {
            jobs.expect_same(job, &before, stage.may_lose()).await;
            assert_eq!(jobs.status(job).await.conditions, status.conditions, "{job}");
            assert_eq!(jobs.status(job).await.start_time, status.start_time, "{job}");
        }
    }

    // The other objects of an MPIJob are now ours: the ConfigMap lists the workers as they begin to run.
    let mut created = all.iter().filter(|(jobs, stage, _)| is_created_mpi(jobs, *stage));
    let (jobs, stage, job) = created.next().unwrap();
    stage.go_on(jobs, job).await;
    let hosts = [0, 1].map(|n| format!("\necho {job}-worker-{n}:1")).concat();
    let tells = |config: Option<&ConfigMap>| {
        let files = config.and_then(|config| config.data.as_ref());
        files.is_some_and(|files| files["discover_hosts.sh"].ends_with(&hosts))
    };
    cluster.wait(&namespace, &format!("{job}-config"), tells).await;

    join_all(
        all.iter()
            .map(async |(jobs, stage, job)| stage.end(jobs, job).await),
    )
    .await;
    for (jobs, stage, job) in &all {
        jobs.expect_end(job, *stage != Stage::Failed).await;
    }
    let after = kinds[0].identities().await;
    let is_beside = |name: &str| {
        ["config ", "account ", "role ", "binding "]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    let beside = |all: &Identities| -> Identities {
        let of_before = |name: &str| is_beside(name) && !name.contains("mpi-last");
        all.clone()
            .into_iter()
            .filter(|(name, _)| of_before(name))
            .collect()
    };
    let mpi = all.iter().filter(|(jobs, ..)| jobs.kind.name == "MPIJob").count();
    assert_eq!(beside(&before).len(), 4 * mpi, "{before:?}");
    // A job that ends gives them back. Jobs that had ended before keep what they had.
    let had_ended = |name: &str| {
        ["-succeeded-", "-failed-", "-cleaningup-"]
            .iter()
            .any(|end| name.contains(end))
    };
    let mut kept = beside(&before);
    kept.retain(|name, _| had_ended(name));
    assert_eq!(beside(&after), kept);
    assert_eq!(self::failures(cluster, &namespace).await, failures);
    stop(ours).await;
}

/// Returns the events about failures.
async fn failures(cluster: &ControlPlane, namespace: &str) -> BTreeSet<String> {
    let events: Api<Event> = Api::namespaced(cluster.client(), namespace);
    let all = events.list(&ListParams::default()).await.unwrap();
    let failed = all.iter().filter(|event| {
        event
            .reason
            .as_deref()
            .is_some_and(|reason| reason.starts_with("Failed"))
    });
    failed
        .map(|event| format!("{} {:?}", event.name_any(), event.message))
        .collect()
}
