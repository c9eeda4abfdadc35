//! One of two operators leads. When it fails, the other takes over, and no job is affected.

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::jiff::SignedDuration;
use serde_json::Value;
use training_job::api::ConditionType;
use training_job_testbed::cluster::{Call, Fault, On, Signal};
use training_operator_testing::operator::{Operator, command};

use super::candidates::{Election, LEASE_SECONDS, control_plane, since_lease_of, works};
use crate::rig::jobs::{is, job};
use crate::rig::stage::Stage;

fn seconds(n: i32) -> SignedDuration {
    SignedDuration::from_secs(n.into())
}

#[tokio::test]
async fn one_works_and_the_other_stands_by() {
    let Election { stage, leader, other } = Election::start("stand-by").await;
    assert_eq!((leader.leads().await, other.leads().await), (1.0, 0.0));
    for candidate in [&leader, &other] {
        assert_eq!(
            candidate.operator.page("health", "/readyz").await,
            (200, "ok".to_owned())
        );
        assert_eq!(
            candidate.operator.page("health", "/healthz").await,
            (200, "ok".to_owned())
        );
    }
    stage.create(job("a", 2)).await;
    stage.until_all_run("a", 2).await;
    stage.succeed("a", 2).await;
    let calls = stage.calls();
    assert!(calls.iter().any(|c| leader.made(c) && works(c)));
    let of_other: Vec<_> = calls.iter().filter(|c| other.made(c)).collect();
    assert!(!of_other.is_empty());
    // Both may try to create the lease at first; the other one's is refused.
    let stores = |c: &Call| c.verb != "get" && c.code != 409;
    assert!(
        of_other.iter().all(|c| c.resource == "leases" && !stores(c)),
        "{of_other:?}"
    );
    stage.expect_each_made_once();
}

#[tokio::test]
async fn a_killed_leader_is_succeeded_when_its_lease_is_over() {
    let Election { stage, leader, other } = Election::start("killed").await;
    stage.create(job("a", 4)).await;
    let pods = stage.until_all_run("a", 4).await;
    leader.operator.0.signal(Signal::KILL);
    assert_eq!(leader.operator.0.exit_code().await, 137);
    let last = stage.lease().await;
    stage.create(job("b", 2)).await;
    let next = other.takes_over(&stage).await;
    let (renewed, acquired) = (last.renew_time.unwrap().0, next.acquire_time.unwrap().0);
    let gap = acquired.duration_since(renewed);
    assert!(gap >= seconds(LEASE_SECONDS), "{gap}: the lease was not over");
    assert!(gap <= seconds(2 * LEASE_SECONDS), "{gap}");
    assert_eq!(
        next.lease_transitions,
        Some(last.lease_transitions.unwrap_or_default() + 1)
    );
    stage.until_all_run("b", 2).await;
    assert_eq!(stage.pods_of("a").await, pods);
    stage.succeed("a", 4).await;
    stage.expect_each_made_once();
}

/// With this lease, another candidate would wait for an hour.
#[tokio::test]
async fn the_next_process_of_a_pod_takes_its_own_lease_at_once() {
    let cluster = control_plane().await;
    let stage = Stage::of(cluster, "same-pod").await;
    let start = || {
        let flags = [
            "--leader-elect",
            "--leader-election-id=lease",
            "--leader-election-lease-duration=1h",
            &format!("--leader-election-namespace={}", stage.namespace),
            &format!("--namespace={}", stage.namespace),
        ];
        let program = command(&cluster.kubeconfig(), &flags).env("HOSTNAME", "pod");
        Operator(cluster.spawn(program.env("MY_POD_UID", "0b1c")))
    };
    let first = start();
    assert_eq!(stage.holder(|_| true).await, "pod_0b1c");
    first.0.signal(Signal::KILL);
    assert_eq!(first.0.exit_code().await, 137);
    let second = start();
    second.0.wait_for_line("running jobs").await;
    stage.create(job("a", 2)).await;
    stage.until_all_run("a", 2).await;
    assert_eq!(stage.lease().await.lease_transitions, Some(0));
}

#[tokio::test]
async fn a_leader_that_was_stopped_and_continues_writes_nothing_and_stands_by() {
    let Election { stage, leader, other } = Election::start("stopped").await;
    stage.create(job("a", 2)).await;
    let pods = stage.until_all_run("a", 2).await;
    leader.operator.0.signal(Signal::STOP);
    // Its watches deliver these events before it checks the clock.
    stage.create(job("b", 4)).await;
    for n in 0..4 {
        stage.create(job(&format!("b{n}"), 1)).await;
    }
    stage.kubelet.succeeds("a-scheduler-0").await;
    other.takes_over(&stage).await;
    stage.until_all_run("b", 4).await;
    stage.until("a", ConditionType::Succeeded).await;
    leader.operator.0.signal(Signal::CONT);
    leader.operator.0.wait_for_line("this process is a standby").await;
    leader.operator.ready().await;
    assert_eq!(leader.leads().await, 0.0);
    stage.create(job("c", 2)).await;
    stage.until_all_run("c", 2).await;
    let calls = stage.calls();
    let late: Vec<_> = since_lease_of(&other, &calls)
        .iter()
        .filter(|c| leader.made(c) && works(c))
        .collect();
    assert!(late.is_empty(), "{late:?}");
    assert_eq!(stage.pods_of("a").await, pods);
    // It works like a new one.
    other.operator.0.signal(Signal::KILL);
    leader.takes_over(&stage).await;
    stage.create(job("d", 2)).await;
    stage.until_all_run("d", 2).await;
    stage.expect_each_made_once();
    leader.operator.expect_well();
}

#[tokio::test]
async fn a_leader_that_is_cut_off_gives_up_and_comes_back_to_stand_by() {
    let Election { stage, leader, other } = Election::start("cut-off").await;
    stage.create(job("a", 2)).await;
    let pods = stage.until_all_run("a", 2).await;
    let hole = leader.proxy.fault(On::any(), Fault::BlackHole);
    let frozen = leader.proxy.freeze_watches("");
    assert_eq!(frozen.count(), 5, "two kinds, pods, services and ConfigMaps");
    stage.create(job("b", 4)).await;
    leader.operator.0.wait_for_line("this process is a standby").await;
    other.takes_over(&stage).await;
    stage.until_all_run("b", 4).await;
    assert!(hole.count() > 0, "{hole:?}");
    hole.lift();
    frozen.thaw();
    leader.operator.ready().await;
    leader
        .proxy
        .wait_for(
            &On::call("get", "leases"),
            leader.proxy.count(&On::call("get", "leases")),
        )
        .await;
    let calls = stage.calls();
    let late: Vec<_> = since_lease_of(&other, &calls)
        .iter()
        .filter(|c| leader.made(c) && works(c))
        .collect();
    assert!(late.is_empty(), "{late:?}");
    assert_eq!(leader.leads().await, 0.0);
    assert_eq!(stage.pods_of("a").await, pods);
    stage.succeed("a", 2).await;
    stage.expect_each_made_once();
    leader.operator.expect_well();
}

#[tokio::test]
async fn a_leader_releases_the_lease_on_sigterm() {
    let Election { stage, leader, other } = Election::start("asked").await;
    stage.create(job("a", 2)).await;
    let pods = stage.until_all_run("a", 2).await;
    leader.operator.0.signal(Signal::TERM);
    assert_eq!(leader.operator.0.exit_code().await, 0);
    let next = other.takes_over(&stage).await;
    let calls = stage.calls();
    let written: Vec<LeaseSpec> = calls
        .iter()
        .filter(|c| leader.made(c) && c.resource == "leases" && c.code < 300)
        .filter_map(|c| serde_json::from_value(c.body.as_ref()?["spec"].clone()).ok())
        .collect();
    let given_back = written.last().unwrap().holder_identity.as_deref();
    assert_eq!(given_back.unwrap_or_default(), "", "{written:?}");
    let renewed = written.iter().rev().find_map(|spec| spec.renew_time.clone());
    let gap = next.acquire_time.unwrap().0.duration_since(renewed.unwrap().0);
    assert!(gap < seconds(LEASE_SECONDS), "{gap}: the lease was waited out");
    stage.create(job("b", 2)).await;
    stage.until_all_run("b", 2).await;
    assert_eq!(stage.pods_of("a").await, pods);
    stage.succeed("a", 2).await;
    stage.expect_each_made_once();

    // An operator on standby has no lease to release, and ends as well.
    let third = Operator::start(
        stage.cluster,
        other.proxy.kubeconfig(),
        &[
            "--leader-elect",
            "--leader-election-id=lease",
            &format!("--leader-election-namespace={}", stage.namespace),
        ],
    );
    third.ready().await;
    third.0.signal(Signal::TERM);
    assert_eq!(third.0.exit_code().await, 0);
    let messages: Vec<Value> = third
        .log()
        .into_iter()
        .map(|mut line| line["message"].take())
        .collect();
    let [.., stopping, stopped] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert!(
        stopping
            .as_str()
            .unwrap_or_default()
            .starts_with("operator stopping"),
        "{messages:?}"
    );
    assert_eq!(stopped, "stopped");
}

/// Election prevents this situation. Still nothing is created twice, and nothing is deleted.
#[tokio::test]
async fn two_without_election_waste_calls_and_do_no_harm() {
    let stage = Stage::of(control_plane().await, "two").await;
    let operators = [stage.operator(), stage.operator()];
    for operator in &operators {
        operator.ready().await;
    }
    for n in 0..4 {
        stage.create(job(&format!("j{n}"), 4)).await;
    }
    for n in 0..4 {
        let name = format!("j{n}");
        let pods = stage.until_all_run(&name, 4).await;
        let ended = stage.succeed(&name, 4).await;
        assert_eq!(stage.pods_of(&name).await, pods);
        let status = ended.status.unwrap().job;
        let types: Vec<_> = status.conditions.iter().map(|c| &*c.type_).collect();
        assert_eq!(types, ["Created", "Running", "Succeeded"]);
        assert_eq!(status.restart_count, 0);
        assert!(!is(
            &stage.jobs().get(&name).await.unwrap(),
            ConditionType::Failed
        ));
    }
    stage.expect_no_harm();
    assert_eq!(stage.pods_deleted(), 0);
    for operator in &operators {
        operator.expect_well();
    }
}
