//! The cost of whole lives of jobs.

use futures::future::join_all;
use serde_json::Value;
use training_job::api::ConditionType;

use super::bill::{Bill, stage};
use crate::rig::jobs::{cleaned, deciding, job, mpi_job};
use crate::rig::stage::Stage;

/// The time at which a job's pods start to run.
#[derive(Clone, Copy)]
enum Start {
    AtOnce,
    /// After the first status was written.
    Late,
}

/// Runs a job from its creation to its end. Its pods begin together and end together.
async fn life(stage: &Stage<'_>, job: Value, replicas: u32, start: Start) -> Bill {
    let name = job["metadata"]["name"].as_str().unwrap().to_owned();
    let clean = job["spec"]["runPolicy"]["cleanPodPolicy"] == "All";
    stage.create(job).await;
    if matches!(start, Start::Late) {
        stage.until(&name, ConditionType::Created).await;
        let pods = stage.pods_of(&name).await;
        join_all(pods.keys().map(|pod| stage.kubelet.runs(pod))).await;
    }
    let pods = stage.until_all_run(&name, replicas).await;
    let first = deciding(&name, replicas);
    let others = pods.keys().filter(|pod| **pod != first);
    join_all(others.map(|pod| stage.kubelet.succeeds(pod))).await;
    stage.kubelet.succeeds(&first).await;
    stage.until(&name, ConditionType::Succeeded).await;
    let last = if clean {
        "SuccessfulDeleteService"
    } else {
        "MXJobSucceeded"
    };
    stage.until_event(&name, last).await;
    Bill::of(stage, &name)
}

/// Runs jobs until one costs no more statuses than expected. The operator waits a second for simultaneous changes. A
/// machine that is too slow once gets another attempt. An operator that writes too often fails all attempts.
async fn quick_life(stage: &Stage<'_>, replicas: u32, policy: &str, start: Start) -> Bill {
    let mut bills = Vec::new();
    let statuses = match start {
        Start::AtOnce => 2,
        Start::Late => 3,
    };
    for n in 0..6 {
        let name = format!("j{replicas}{}{n}", policy.to_lowercase());
        let bill = life(stage, cleaned(job(&name, replicas), policy), replicas, start).await;
        if bill.statuses.len() <= statuses {
            return bill;
        }
        bills.push(bill);
    }
    panic!("each life costs more than {statuses} statuses: {bills:#?}");
}

#[tokio::test]
async fn a_job_of_n_replicas_costs_2n_calls_and_two_statuses() {
    let stage = stage("lives").await;
    let operator = stage.operator();
    for replicas in [1, 4, 20] {
        let bill = quick_life(&stage, replicas, "None", Start::AtOnce).await;
        let n = usize::try_from(replicas).unwrap();
        // The scheduler's address may already be given back.
        let given_back = bill.objects - 2 * n;
        assert!(given_back <= usize::from(replicas > 1), "{bill:?}");
        assert!(bill.statuses.len() <= 2, "{n}: {bill:?}");
        assert!(bill.events <= 4 + given_back, "{n}: {bill:?}");
        assert_eq!(bill.others, 0, "{n}: {bill:?}");
    }
    operator.expect_well();
}

/// The other calls concern a service, and a ConfigMap if it pays, which is deleted at the end.
#[tokio::test]
async fn a_compact_job_of_n_replicas_costs_n_calls_and_a_few() {
    let stage = stage("compact").await;
    let operator = stage.operator();
    for (replicas, others) in [(4, 1..=1), (60, 2..=3)] {
        let name = format!("compact{replicas}");
        let mut job = cleaned(job(&name, replicas), "None");
        job["spec"]["runPolicy"]["layout"] = "Compact".into();
        let bill = life(&stage, job, replicas, Start::AtOnce).await;
        let n = usize::try_from(replicas).unwrap();
        assert!(others.contains(&(bill.objects - n)), "{n}: {bill:?}");
        assert_eq!(bill.others, 0, "{n}: {bill:?}");
    }
    operator.expect_well();
}

#[tokio::test]
async fn pods_that_run_late_cost_one_status_write_more() {
    let stage = stage("late").await.without_nodes();
    let operator = stage.operator();
    for replicas in [1, 4, 20] {
        let bill = quick_life(&stage, replicas, "None", Start::Late).await;
        let n = usize::try_from(replicas).unwrap();
        let given_back = bill.objects - 2 * n;
        assert!(given_back <= usize::from(replicas > 1), "{bill:?}");
        assert!(bill.statuses.len() <= 3, "{n}: {bill:?}");
        assert!(bill.events <= 4 + given_back, "{n}: {bill:?}");
        assert_eq!(bill.others, 0, "{n}: {bill:?}");
    }
    operator.expect_well();
}

#[tokio::test]
async fn to_clean_all_up_costs_as_much_again() {
    let stage = stage("cleaned").await;
    let operator = stage.operator();
    for replicas in [1, 4, 20] {
        let bill = quick_life(&stage, replicas, "All", Start::AtOnce).await;
        let n = usize::try_from(replicas).unwrap();
        assert_eq!(bill.objects, 4 * n, "{bill:?}");
        assert!(bill.objects + bill.statuses.len() <= 4 * n + 4, "{n}: {bill:?}");
        assert!(bill.events <= 6, "{n}: {bill:?}");
        assert_eq!(bill.others, 0, "{n}: {bill:?}");
    }
    operator.expect_well();
}

/// The Role, its binding, the account and the ConfigMap have no events.
#[tokio::test]
async fn an_mpi_job_costs_the_calls_of_its_objects_and_four_events() {
    let stage = Stage::new("objects").await;
    let operator = stage.operator_with(&["--enable-scheme=MPIJob"]);
    let job = cleaned(mpi_job("v1", "mpi"), "None");
    stage.cluster.create(&stage.namespace, &job).await;
    stage.until_pods("mpi", 2).await;
    join_all(["mpi-worker-0", "mpi-worker-1"].map(|pod| stage.kubelet.runs(pod))).await;
    stage.until_pods("mpi", 3).await;
    stage.kubelet.runs("mpi-launcher").await;
    stage.kubelet.succeeds("mpi-launcher").await;
    stage.until_event("mpi", "MPIJobSucceeded").await;
    let calls = stage.proxy.calls();
    let of_job = calls.iter().filter(|call| call.name.starts_with("mpi"));
    // Seven objects, four events, three changes of the Role and the ConfigMap, two statuses. The first status is
    // written before all pods run if the machine is slow.
    let calls: Vec<_> = of_job.map(|call| (&call.verb, &call.resource)).collect();
    assert!(calls.len() <= 17, "{}: {calls:#?}", calls.len());
    operator.expect_well();
}
