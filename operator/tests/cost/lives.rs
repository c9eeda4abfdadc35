//! Whole lives.

use futures::future::join_all;
use training_job::api::ConditionType;

use crate::bill::{Bill, stage};
use crate::rig::jobs::{cleaned, deciding, job};
use crate::rig::stage::Stage;

/// A job's life from its creation to its end: its pods run at once, and end together.
async fn life(stage: &Stage<'_>, name: &str, replicas: u32, policy: &str) -> Bill {
    stage.create(cleaned(job(name, replicas), policy)).await;
    let pods = stage.until_all_run(name, replicas).await;
    let first = deciding(name, replicas);
    let others = pods.keys().filter(|pod| **pod != first);
    join_all(others.map(|pod| stage.kubelet.succeeds(pod))).await;
    stage.kubelet.succeeds(&first).await;
    stage.until(name, ConditionType::Succeeded).await;
    let last = match policy {
        "All" => "SuccessfulDeleteService",
        _ => "MXJobSucceeded",
    };
    stage.until_event(name, last).await;
    Bill::of(stage, name)
}

/// Lives one more life while the machine was too slow to start a job's pods within the second in which the
/// operator waits for them. Whoever writes the first status too early will do so again.
async fn quick_life(stage: &Stage<'_>, replicas: u32, policy: &str) -> Bill {
    let mut bills = Vec::new();
    for n in 0..6 {
        let bill = life(
            stage,
            &format!("j{replicas}{}{n}", policy.to_lowercase()),
            replicas,
            policy,
        )
        .await;
        // Never more than this, however slow.
        assert!(bill.statuses <= 3 || !bills.is_empty(), "{bill:?}");
        if bill.says_all_at_once() {
            return bill;
        }
        bills.push(bill);
    }
    panic!("the first status never tells that the job runs: {bills:#?}");
}

#[tokio::test]
async fn a_job_of_n_replicas_costs_2n_calls_and_two_statuses() {
    let stage = stage("lives").await;
    let operator = stage.operator();
    for replicas in [1, 4, 20] {
        let bill = quick_life(&stage, replicas, "None").await;
        let n = usize::try_from(replicas).unwrap();
        assert_eq!(bill.objects, 2 * n, "{bill:?}");
        assert!(bill.objects + bill.statuses <= 2 * n + 2, "{n}: {bill:?}");
        assert!(bill.events <= 4, "{n}: {bill:?}");
        assert_eq!(bill.others, 0, "{n}: {bill:?}");
    }
    operator.expect_well();
}

#[tokio::test]
async fn to_clean_all_up_costs_as_much_again() {
    let stage = stage("cleaned").await;
    let operator = stage.operator();
    for replicas in [1, 4, 20] {
        let bill = quick_life(&stage, replicas, "All").await;
        let n = usize::try_from(replicas).unwrap();
        assert_eq!(bill.objects, 4 * n, "{bill:?}");
        assert!(bill.objects + bill.statuses <= 4 * n + 4, "{n}: {bill:?}");
        assert!(bill.events <= 6, "{n}: {bill:?}");
        assert_eq!(bill.others, 0, "{n}: {bill:?}");
    }
    operator.expect_well();
}
